/** What the robot path works with: the parts of the running service that a chunk needs, and no others. */
import type { Charges } from "../charge/charges.ts";
import type { Unpaid } from "../charge/unpaid.ts";
import type { Drills } from "../drill.ts";
import type { Clock } from "../std/clock.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Catalog } from "./catalog.ts";
import type { RunSlots, Sessions } from "./exclusive.ts";
import type { Forecast } from "./forecast.ts";
import type { Replays } from "./replay.ts";
import type { RobotStore } from "./store/robot.ts";

export interface RobotDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  readonly drills: Drills;
  readonly catalog: Catalog;
  readonly sessions: Sessions;
  readonly replays: Replays;
  /** How long an observation would wait. */
  readonly forecast: Forecast;
  readonly admission: RunSlots;
  readonly charges: Charges;
  /** The budget of work that nobody pays for, by account. */
  readonly unpaid: Unpaid;
  readonly records: Pick<RobotStore, "settleChunk">;
  /** From admission to answer of one chunk, milliseconds. */
  readonly chunkMs: number;
}
