/** The robot models of this service: which ids it answers for, and which of them are loaded. */
import { armWarning } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import type { Rates } from "../charge/store/records.ts";
import type { Model } from "../engine/engine.ts";
import { SlotPool } from "./session/slots.ts";

/** A model id of the catalog. `model` is set once it is loaded and warm. */
export interface Served {
  readonly manifest: Manifest;
  readonly model: Model | undefined;
  /** Session slots of a loaded model with episode memory. */
  readonly slots: SlotPool | undefined;
  /** What its chunks cost, from the configuration. */
  readonly rates: Rates;
  /** Why its rows must never move a real arm: random weights, or no model at all. Clients read `reference`. */
  readonly warning: string | undefined;
}

export class Catalog {
  /** Models by id. */
  readonly models = new Map<string, Served>();
  /** False until the bundles have been read: until then no id can be called unknown. */
  known = false;

  get ids(): string[] {
    return [...this.models.keys()];
  }

  /** Makes an id known; with its model, once that is warm, it is served. `device`: of a model that is still to be loaded. */
  add(manifest: Manifest, rates: Rates, model?: Model, device = model?.device): void {
    const slots = model && model.slots > 0 ? new SlotPool(model) : undefined;
    this.models.set(manifest.id, { manifest, model, slots, rates, warning: armWarning(manifest, device) });
  }

  /** Replicas that take no more work, a sentence each, of the models that have others left or of those that have none. */
  out(left: "some" | "none"): string[] {
    return [...this.models].flatMap(([id, { model }]) => {
      if (!model || (model.lost.length === model.replicas) !== (left === "none")) return [];
      return model.lost.map(({ replica, device, reason }) => {
        // The runtime's text goes on with the machine's name and paths, which only the log may have.
        const [short] = reason.split(" ; ");
        return `replica ${replica} of model ${id} on ${device} is out: ${short}`;
      });
    });
  }

  /** Ids that are not loaded yet. */
  get loading(): string[] {
    return [...this.models].filter(([, served]) => served.model === undefined).map(([id]) => id);
  }
}
