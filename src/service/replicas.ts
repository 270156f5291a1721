/**
 * The end of replicas: those that are out are logged, and their sessions end; the service ends when none is left. A device that is
 * drained waits for its sessions before that.
 */
import { hardwareOf } from "../config/devices.ts";
import type { DeviceFigures, Engine, LostReplica, Model } from "../engine/engine.ts";
import type { Catalog, Served } from "../robot/catalog.ts";
import type { SlotPool } from "../robot/session/slots.ts";
import type { SessionTable } from "../robot/session/table.ts";
import type { Log } from "../std/log.ts";
import { Problem } from "../std/problem.ts";

/** A replica whose sessions have memory. */
interface Seat {
  readonly slots: SlotPool;
  readonly replica: number;
}

/** A device that is being emptied. */
class Drain {
  private readonly givenUp = Promise.withResolvers<void>();
  private because: Problem | undefined;

  constructor(private readonly seats: readonly Seat[]) {}

  /** Resolves when no session is left there, or with the reason why it is not emptied any more. */
  async emptied(): Promise<Problem | undefined> {
    const left = Promise.all(this.seats.map(({ slots, replica }) => slots.drain(replica)));
    await Promise.race([left, this.givenUp.promise]);
    // The last session may end in the turn in which the drain is given up, and the seats are free again then.
    return this.because;
  }

  giveUp(because: Problem): void {
    for (const { slots, replica } of this.seats) slots.resume(replica);
    this.because = because;
    this.givenUp.resolve();
  }
}

function isOn(hardware: string): (device: string) => boolean {
  return (device) => hardwareOf(device) === hardware;
}

export class Replicas {
  private readonly over = Promise.withResolvers<void>();
  /** Resolves when no replica of any model is left, and none is still loading. */
  readonly noneLeft = this.over.promise;
  /** Devices whose sessions are awaited. */
  private readonly draining = new Map<string, Drain>();
  /** Devices whose replicas end what they have and take nothing more. */
  private readonly drained = new Set<string>();

  constructor(
    private readonly parts: {
      readonly catalog: Catalog;
      readonly sessions: Pick<SessionTable, "loseSlots">;
      readonly log: Log;
    },
  ) {}

  /** Called once the catalog has the model. */
  watch(model: Model): void {
    model.whenLost((lost) => this.lost(model, lost));
    // A replica may have been lost before this.
    for (const lost of model.lost) this.lost(model, lost);
  }

  /** The figures of the engine; a device whose sessions are still awaited is `draining`. */
  devices(engine: Pick<Engine, "devices">): DeviceFigures[] {
    return engine
      .devices()
      .map((figures) =>
        figures.health === "ready" && this.draining.has(figures.device) ? { ...figures, health: "draining" } : figures,
      );
  }

  /**
   * Takes a device out of service without a failure. New sessions go to other devices, and sessions with memory there go on as long as
   * they live; then its replicas take no more inferences and are out, and the promise resolves. A problem, at once or later, says why the
   * device is kept: a model needs it or is loading, or `resume` was called. Everything is then as before.
   */
  drain(device: string, engine: Pick<Engine, "drain">): Problem | Promise<Problem | undefined> {
    const { catalog, log } = this.parts;
    const hardware = hardwareOf(device);
    const refused = (why: string) => new Problem(`${hardware} cannot be drained${why}`);
    if ([...catalog.models.values()].some(({ model }) => model === undefined)) {
      return refused(" while models are loading; try again when /readyz says that all are");
    }
    const stranded = this.stranded(hardware);
    if (stranded !== undefined) {
      return refused(`: model ${stranded} has no replica that works elsewhere; to end that too, stop the service`);
    }
    log.info("device draining", { device: hardware, models: this.modelsOn(hardware).join(", ") });
    const drain = this.draining.get(hardware) ?? new Drain(this.seatsOn(hardware));
    this.draining.set(hardware, drain);
    return this.end(hardware, drain, engine);
  }

  /** Keeps a device whose sessions are still awaited. A problem says that its replicas are out already. */
  resume(device: string): Problem | undefined {
    const hardware = hardwareOf(device);
    if (this.drained.has(hardware)) {
      return new Problem(`the replicas on ${hardware} are out; start the service again to use them`);
    }
    const drain = this.draining.get(hardware);
    if (drain === undefined) return undefined;
    this.keep(hardware, drain, new Problem(`${hardware} is kept in service, since the operator resumed it`));
    this.parts.log.info("device resumed", { device: hardware });
    return undefined;
  }

  private async end(hardware: string, drain: Drain, engine: Pick<Engine, "drain">): Promise<Problem | undefined> {
    const needed = await drain.emptied();
    if (needed !== undefined) return needed;
    const refused = engine.drain(hardware);
    if (refused !== undefined) this.takeBack(hardware, drain, refused);
    else {
      this.draining.delete(hardware);
      this.drained.add(hardware);
    }
    return refused;
  }

  private takeBack(hardware: string, drain: Drain, because: Problem): void {
    this.keep(hardware, drain, because);
    this.parts.log.error("device not drained", { device: hardware, reason: because.message });
  }

  /** The device takes new sessions again. */
  private keep(hardware: string, drain: Drain, because: Problem): void {
    this.draining.delete(hardware);
    drain.giveUp(because);
  }

  private modelsOn(hardware: string): string[] {
    const { models } = this.parts.catalog;
    return [...models].flatMap(([id, { model }]) => (model?.devices.some(isOn(hardware)) ? [id] : []));
  }

  /** The replicas there whose sessions have memory. */
  private seatsOn(hardware: string): Seat[] {
    return [...this.parts.catalog.models.values()].flatMap(({ model, slots }) =>
      (model?.devices ?? []).flatMap((name, replica) => (slots && isOn(hardware)(name) ? [{ slots, replica }] : [])),
    );
  }

  /** The id of a model there without a replica that works elsewhere and goes on to. */
  private stranded(hardware: string): string | undefined {
    const { models } = this.parts.catalog;
    return this.modelsOn(hardware).find((id) => {
      const model = models.get(id)?.model;
      return model && !model.devices.some((_, replica) => this.isKept(model, replica, hardware));
    });
  }

  /** A replica works, and goes on when the device is drained too. */
  private isKept(model: Model, replica: number, hardware: string): boolean {
    const own = hardwareOf(model.devices[replica] ?? hardware);
    const stays = own !== hardware && !this.draining.has(own) && !this.drained.has(own);
    return stays && !model.lost.some((lost) => lost.replica === replica);
  }

  private lost(model: Model, { replica, device, cause, reason }: LostReplica): void {
    const { catalog, sessions, log } = this.parts;
    const { id } = model;
    const facts = { model: id, replica, device, left: model.replicas - model.lost.length, cause, reason };
    if (cause === "drained") log.info("replica drained", facts);
    else log.error("replica out", facts);
    const slots = catalog.models.get(id)?.slots;
    slots?.lose(replica);
    if (slots) sessions.loseSlots(slots);
    for (const [hardware, drain] of this.draining) {
      const stranded = this.stranded(hardware);
      if (stranded === undefined) continue;
      const because = new Problem(`model ${stranded} has lost its last replica elsewhere and needs ${hardware}`);
      this.takeBack(hardware, drain, because);
    }
    // A model that still loads may be healthy; every later loss comes here again.
    if ([...catalog.models.values()].every(isOut)) this.over.resolve();
  }
}

function isOut({ model }: Served): boolean {
  return model !== undefined && model.lost.length === model.replicas;
}
