/** What an observation is after all checks of its transport. */
import type { Served } from "./catalog.ts";
import type { ObservedFrames } from "./frames.ts";
import type { RobotState } from "./state.ts";

/** One observation, typed and complete. */
export interface ObserveCommand {
  readonly served: Served;
  readonly instruction: string;
  readonly frames: ObservedFrames;
  readonly state: RobotState;
  readonly sessionId: string | undefined;
  readonly observation: IdentifiedObservation | undefined;
  readonly expectedStep: number | undefined;
  /** Rows to answer, 1 to the model's rows per chunk. */
  readonly rows: number;
  readonly seed: number;
}

/** An observation that runs once, however often it is sent. */
export interface IdentifiedObservation {
  readonly id: string;
  /** SHA-256 of its canonical content, 32 bytes. */
  readonly digest: Uint8Array;
}
