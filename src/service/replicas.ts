/**
 * What follows when replicas of the loaded models are out: they are logged, their sessions end, and the service when none is left. And how
 * a device is emptied before that: its sessions are awaited.
 */
import { hardwareOf } from "../config/devices.ts";
import type { DeviceFigures, Engine, LostReplica, Model } from "../engine/engine.ts";
import { Problem } from "../error/problem.ts";
import type { Catalog, Served } from "../robot/catalog.ts";
import type { SessionSlots, Sessions } from "../robot/exclusive.ts";
import type { Log } from "../std/log.ts";

export class Replicas {
  private readonly over = Promise.withResolvers<void>();
  /** Resolves when no replica of any model is left, and none is still loading. */
  readonly noneLeft = this.over.promise;
  /** Devices that an operator wants empty. */
  private readonly draining = new Set<string>();

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

  /** What the devices of the engine hold; one whose sessions are still awaited is `draining`. */
  devices(engine: Pick<Engine, "devices">): DeviceFigures[] {
    return engine
      .devices()
      .map((figures) =>
        figures.health === "ready" && this.draining.has(figures.device) ? { ...figures, health: "draining" } : figures,
      );
  }

  /**
   * Takes a device out of service without a failure: new sessions go to other ones, sessions with memory there go on as long as they
   * live, and then its replicas take no more runs and are out. The promise is of that time; its problem says that the engine has
   * refused, since a replica elsewhere was lost meanwhile: everything is as before then, as it is with a problem at once, where a model has
   * no replica that works elsewhere, or is still loading.
   */
  drain(device: string, engine: Pick<Engine, "drain">): Problem | Promise<Problem | undefined> {
    const hardware = hardwareOf(device);
    const isHere = (name: string | undefined) => name !== undefined && hardwareOf(name) === hardware;
    const served = [...this.parts.catalog.models].flatMap(([id, { model, slots }]) =>
      model?.devices.some(isHere) ? [{ id, model, slots }] : [],
    );
    const refused = this.refusal(hardware, served);
    if (refused !== undefined) return refused;
    this.draining.add(hardware);
    this.parts.log.info("device draining", { device: hardware, models: served.map(({ id }) => id).join(", ") });
    const seats = served.flatMap(({ model, slots }) =>
      model.devices.flatMap((name, replica) => (slots && isHere(name) ? [{ slots, replica }] : [])),
    );
    return this.end(hardware, seats, engine);
  }

  /** Why the device is not drained. */
  private refusal(
    hardware: string,
    served: readonly { readonly id: string; readonly model: Model }[],
  ): Problem | undefined {
    if ([...this.parts.catalog.models.values()].some(({ model }) => model === undefined)) {
      return new Problem(
        `${hardware} cannot be drained while models are loading; try again when /readyz says that all are`,
      );
    }
    const stranded = served.find(
      ({ model }) => !model.devices.some((_, replica) => this.isKept(model, replica, hardware)),
    );
    if (stranded === undefined) return undefined;
    return new Problem(
      `${hardware} cannot be drained: model ${stranded.id} has no replica that works elsewhere; to end that too, stop the service`,
    );
  }

  private async end(
    hardware: string,
    seats: readonly { readonly slots: SessionSlots; readonly replica: number }[],
    engine: Pick<Engine, "drain">,
  ): Promise<Problem | undefined> {
    await Promise.all(seats.map(({ slots, replica }) => slots.drain(replica)));
    const refused = engine.drain(hardware);
    if (refused !== undefined) {
      // A replica elsewhere was lost meanwhile: the device is needed again.
      this.draining.delete(hardware);
      for (const { slots, replica } of seats) slots.resume(replica);
      this.parts.log.error("device not drained", { device: hardware, reason: refused.message });
    }
    return refused;
  }

  /** Whether a replica works and goes on to when the device is drained too. */
  private isKept(model: Model, replica: number, hardware: string): boolean {
    const own = hardwareOf(model.devices[replica] ?? hardware);
    return own !== hardware && !this.draining.has(own) && !model.lost.some((lost) => lost.replica === replica);
  }

  private lost(model: Model, { replica, device, cause, reason }: LostReplica): void {
    const { catalog, sessions, log } = this.parts;
    const { id } = model.manifest;
    const facts = { model: id, replica, device, left: model.replicas - model.lost.length, cause, reason };
    if (cause === "drained") log.info("replica drained", facts);
    else log.error("replica out", facts);
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
