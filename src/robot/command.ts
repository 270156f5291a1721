/** An observation after all checks of its transport, its caller, and the parts of the service that an attempt needs. */
import type { Charges } from "../charge/charges.ts";
import type { Unpaid } from "../charge/unpaid.ts";
import type { Drills } from "../drill.ts";
import { canonicalDigest } from "../std/canonical.ts";
import type { Clock } from "../std/clock.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import type { Admission } from "./admission.ts";
import type { Catalog, Served } from "./catalog.ts";
import type { Forecast } from "./forecast.ts";
import type { ObservedFrames } from "./frames.ts";
import type { Replays } from "./replay.ts";
import type { Holder, SessionTable } from "./session/table.ts";
import type { RobotState } from "./state.ts";
import type { RobotStore } from "./store/robot.ts";

/** One observation, typed and complete. */
export interface ObserveCommand {
  readonly served: Served;
  readonly instruction: string;
  /** The attempt gives them back, however the observation ends. */
  readonly frames: ObservedFrames;
  readonly state: RobotState;
  readonly sessionId?: string | undefined;
  /** An observation with an id runs once, however often it is sent. */
  readonly observationId?: string | undefined;
  readonly expectedStep?: number | undefined;
  /** Rows to answer, 1 to the model's rows per chunk. */
  readonly rows: number;
  /** Accepted and compared, read by no model. */
  readonly inferenceSteps?: number | undefined;
  readonly seed: number;
  /** Milliseconds from `arrivedMs` on: a later chunk is worthless. Undefined: only the service's own time counts. */
  readonly deadlineMs?: number | undefined;
}

/**
 * What makes two observations the same (contract section 2): their content, over any transport. `stream`, `actions_format` and
 * `deadline_ms` are not part of it. SHA-256, 32 bytes; a control that was left out counts as its default.
 */
export function observationDigest(command: ObserveCommand): Uint8Array {
  const { served, frames, state } = command;
  return canonicalDigest("observation", {
    model: served.manifest.id,
    session_id: command.sessionId ?? null,
    instruction: command.instruction,
    frames: frames.digests(served.manifest.cameras.length),
    state,
    expected_step: command.expectedStep ?? null,
    action_horizon: command.rows,
    num_inference_steps: command.inferenceSteps ?? null,
    seed: command.seed,
  });
}

/** Who sends an observation. */
export interface Caller {
  /** Every line that is logged about the observation has it. */
  readonly requestId: string;
  readonly accountId: string;
  /** Public id of its key. */
  readonly keyId: string;
  /** Aborts when the client has left: that takes the inference back as long as the model has not started on it. */
  readonly signal: AbortSignal;
  /** Called while `signal` aborts, if the model has started: the chunk is finished, charged and kept for a repeat. */
  readonly goesOn?: () => void;
  /** The connection that holds the session, where one does. */
  readonly holder?: Holder;
  /** The transport begins its answer before the chunk is there: a bad image is refused before that. */
  readonly streams?: boolean;
  /** Monotonic ms when the last byte of the observation's body, or its text message, was there. */
  readonly arrivedMs: number;
}

export interface RobotDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  readonly drills: Drills;
  readonly catalog: Catalog;
  readonly sessions: SessionTable;
  readonly replays: Replays;
  readonly forecast: Forecast;
  readonly admission: Admission;
  readonly charges: Charges;
  /** The budget of work that nobody pays for, by account. */
  readonly unpaid: Unpaid;
  readonly records: Pick<RobotStore, "settleChunk">;
  /** The time for one chunk, admission to answer, milliseconds. */
  readonly chunkMs: number;
}
