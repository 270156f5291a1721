/** The failure of each of the engine's faults: its row, and what a client may do next. */
import type { Fault, FaultKind } from "../engine/fault.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure, type Row } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

const AGAIN = "retry in a moment";
const ANSWERS: Readonly<Record<FaultKind, readonly [row: Row, advice: string]>> = {
  busy: [ROBOT.engine_unavailable, AGAIN],
  cancelled: [ROBOT.engine_unavailable, AGAIN],
  replica_out: [ROBOT.engine_unavailable, AGAIN],
  out_of_memory: [ROBOT.engine_unavailable, `${AGAIN}, and tell the operator if it goes on`],
  instruction_too_long: [ROBOT.instruction_too_long, "send a shorter one (nothing is cut off)"],
  bad_image: [ROBOT.invalid_image, "send a whole baseline or progressive JPEG, 8 bits, grayscale or YCbCr"],
  wrong_size: [ROBOT.invalid_image, "send frames of that size, since this model resizes none"],
  decoder_failed: [EVERY.internal_error, "report the request's id"],
  model_failed: [ROBOT.model_failure, "retry, and tell the operator if it goes on"],
};

/** Faults of what a client has sent: their failures name the field. */
const SENT: ReadonlySet<FaultKind> = new Set(["instruction_too_long", "bad_image", "wrong_size"]);

/** `param`: the request field that the engine was given. */
export function failureOf({ kind, message, detail }: Fault, param?: string): Failure {
  const [row, advice] = ANSWERS[kind];
  return new Failure(row, `${message}; ${advice}`, {
    ...(SENT.has(kind) && param !== undefined && { param }),
    ...(row === ROBOT.engine_unavailable && { retryAfterSeconds: 1 }),
    ...(detail !== undefined && { detail }),
  });
}
