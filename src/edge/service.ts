/** What the routes work with: the parts of the running service, put together by `serve`. */

import type { DeviceLogins } from "../account/device.ts";
import type { Keys } from "../account/keys.ts";
import type { People } from "../account/people.ts";
import type { Manifest } from "../bundle/manifest.ts";
import type { Drills } from "../drill.ts";
import type { Model } from "../engine/engine.ts";
import type { Meter } from "../meter/meter.ts";
import type { Observations } from "../session/observations.ts";
import type { SlotPool } from "../session/slots.ts";
import type { SessionTable } from "../session/table.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { Counter, Recent } from "../std/metrics.ts";
import type { Store } from "../store/store.ts";
import type { Admission } from "./admission.ts";
import type { Ingress } from "./body.ts";
import type { Sockets } from "./socket/sockets.ts";

/** A model id that this service answers for; `model` is there once it is loaded and warm. */
export interface Served {
  readonly manifest: Manifest;
  readonly model: Model | undefined;
  /** Session slots of a loaded model with episode memory. */
  readonly slots: SlotPool | undefined;
}

export class Catalog {
  /** By served id. */
  readonly models = new Map<string, Served>();
  /** False until the bundles have been read: no id is known to be unknown before. */
  known = false;

  get ids(): string[] {
    return [...this.models.keys()];
  }

  /** Ids that are not loaded yet. */
  get loading(): string[] {
    return [...this.models].filter(([, served]) => served.model === undefined).map(([id]) => id);
  }
}

/** Where the process stands between its start and its end. */
export class Lifecycle {
  draining = false;
  private running = 0;
  private idle = Promise.withResolvers<void>();
  private readonly end = new AbortController();

  /** Aborts when what still waits must be answered at once. */
  get over(): AbortSignal {
    return this.end.signal;
  }

  cut(): void {
    this.end.abort();
  }

  enter(): void {
    this.running += 1;
  }

  leave(): void {
    this.running -= 1;
    if (this.draining && this.running === 0) this.idle.resolve();
  }

  /** From now on nothing new is accepted; resolves when every running request is answered. */
  drain(): Promise<void> {
    this.draining = true;
    if (this.running === 0) this.idle.resolve();
    return this.idle.promise;
  }
}

export interface Service {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Store;
  readonly keys: Keys;
  readonly meter: Meter;
  readonly people: People;
  readonly devices: DeviceLogins;
  readonly sessions: SessionTable;
  readonly observations: Observations;
  readonly catalog: Catalog;
  readonly lifecycle: Lifecycle;
  readonly ingress: Ingress;
  readonly admission: Admission;
  readonly sockets: Sockets;
  readonly drills: Drills;
  /** Answered requests by `route` and `status`. */
  readonly requests: Counter;
  /** From an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly chat: Recent; readonly episode: Recent };
  /** From admission to answer of one chunk, milliseconds. */
  readonly chunkMs: number;
}
