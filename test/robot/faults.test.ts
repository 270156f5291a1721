import { expect, test } from "bun:test";
import { Fault, type FaultKind } from "../../src/engine/fault.ts";
import { failureOf } from "../../src/robot/faults.ts";

const AGAIN = "retry in a moment";
const LONG = "send a shorter one (nothing is cut off)";
const JPEG = "send a whole baseline or progressive JPEG, 8 bits, grayscale or YCbCr";
const ILL = "retry, and tell the operator if it goes on";

test.each<[FaultKind, status: number, code: string, advice: string]>([
  ["busy", 503, "engine_unavailable", AGAIN],
  ["cancelled", 503, "engine_unavailable", AGAIN],
  ["replica_out", 503, "engine_unavailable", AGAIN],
  ["out_of_memory", 503, "engine_unavailable", `${AGAIN}, and tell the operator if it goes on`],
  ["instruction_too_long", 400, "instruction_too_long", LONG],
  ["bad_image", 400, "invalid_image", JPEG],
  ["wrong_size", 400, "invalid_image", "send frames of that size, since this model resizes none"],
  ["decoder_failed", 500, "internal_error", "report the request's id"],
  ["model_failed", 500, "model_failure", ILL],
])("a client gets %s as %d %s", (kind, status, code, advice) => {
  const failure = failureOf(new Fault(kind, "what happened", "for the log"), "messages[0]");
  const message = `what happened; ${advice}`;
  expect(failure).toMatchObject({ status, code, message, detail: "for the log" });
  expect(failure.retryAfterSeconds).toBe(status === 503 ? 1 : undefined);
  expect(failure.param).toBe(status === 400 ? "messages[0]" : undefined);
});
