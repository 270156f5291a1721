/** What the storage of runs works with. */
import type { Drills } from "../drill.ts";
import type { Log } from "../std/log.ts";
import type { SeenClock } from "../std/seen-clock.ts";
import type { Blobs } from "./blob/blobs.ts";
import type { RunPermits } from "./gate.ts";
import type { Meter } from "./meter.ts";
import type { RunBounds } from "./store/records.ts";
import type { RunStore } from "./store/runs.ts";

export interface RunDeps {
  readonly clock: SeenClock;
  readonly log: Log;
  readonly drills: Drills;
  readonly store: RunStore;
  readonly blobs: Blobs;
  /** This process. */
  readonly owner: string;
  readonly bounds: RunBounds;
  /** Permits of requests without the bytes of a file. */
  readonly requests: RunPermits;
  /** Permits of bodies. */
  readonly bodies: RunPermits;
  readonly meter: Meter;
  /** Files that come, and attempts to put uploads together, in this process: nobody else's to end. */
  readonly live: Set<string>;
}
