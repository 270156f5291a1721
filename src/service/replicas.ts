/** What follows when replicas of the loaded models are out: they are logged, their sessions end, and the service when none is left. */
import type { LostReplica, Model } from "../engine/engine.ts";
import type { Catalog, Served } from "../robot/catalog.ts";
import type { Sessions } from "../robot/exclusive.ts";
import type { Log } from "../std/log.ts";

export class Replicas {
  private readonly over = Promise.withResolvers<void>();
  /** Resolves when no replica of any model is left, and none is still loading. */
  readonly noneLeft = this.over.promise;

  constructor(
    private readonly parts: {
      readonly catalog: Catalog;
      readonly sessions: Pick<Sessions, "loseSlots">;
      readonly log: Log;
    },
  ) {}

  /** From a model's loading on, once the catalog has it. */
  watch(model: Model): void {
    model.whenLost((lost) => this.lost(model, lost));
    // A replica may have been lost between its first run and this.
    for (const lost of model.lost) this.lost(model, lost);
  }

  private lost(model: Model, { replica, reason }: LostReplica): void {
    const { catalog, sessions, log } = this.parts;
    const { id } = model.manifest;
    log.error("replica out", { model: id, replica, left: model.replicas - model.lost.length, reason });
    const slots = catalog.models.get(id)?.slots;
    slots?.lose(replica);
    if (slots) sessions.loseSlots(slots);
    // A model that still loads may be healthy. The catalog is looked at again with whatever is lost after its load.
    if ([...catalog.models.values()].every(isOut)) this.over.resolve();
  }
}

function isOut({ model }: Served): boolean {
  return model !== undefined && model.lost.length === model.replicas;
}
