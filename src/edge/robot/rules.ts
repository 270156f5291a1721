/** Rules of single fields that the transports of an observation share: each says what is wrong, or nothing. */
import { Failure, type Row } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import type { Catalog, Served } from "../../robot/catalog.ts";

/** What a client sent; `null` in an optional field equals its absence. */
interface Fields {
  optional(name: string): unknown;
}

export const observationIdPattern = new RegExp(`^[A-Za-z0-9._:-]{1,${LIMITS.observationIdCharsMax}}$`);

/** Unicode scalar values outside the general categories C*, counted in code points, without white space at either end. */
export const sessionIdPattern = new RegExp(
  `^[^\\p{C}\\s](?:\\P{C}{0,${LIMITS.sessionIdCharsMax - 2}}[^\\p{C}\\s])?$`,
  "u",
);

/** Failures: `model_missing`, `model_not_found`; `engine_unavailable` while nobody knows yet what is served. */
export function servedModel(fields: Fields, catalog: Catalog): Served | Failure {
  const id = fields.optional("model");
  if (id === undefined || id === "") {
    return new Failure(ROBOT.model_missing, `model is missing; served: ${catalog.ids.join(", ")}`, { param: "model" });
  }
  const served = typeof id === "string" ? catalog.models.get(id) : undefined;
  if (served) return served;
  if (!catalog.known) return new Failure(ROBOT.engine_unavailable, "the service is starting; retry in a second");
  const message = `this model is not served; use one of: ${catalog.ids.join(", ")}`;
  return new Failure(ROBOT.model_not_found, message, { param: "model" });
}

export function instructionFault(served: Served, instruction: string, param: string): Failure | undefined {
  if (instruction.trim() === "") {
    return new Failure(
      ROBOT.instruction_missing,
      "frames came without an instruction; send a text that says what to do",
      {
        param,
      },
    );
  }
  // The engine bounds its own work: a text that cannot fit is refused before it is tokenised.
  const tokens = served.model?.measure({ instruction });
  return tokens instanceof Failure ? new Failure(tokens.row, tokens.message, { param }) : undefined;
}

export function flag(fields: Fields, param: "stream" | "handoff"): Failure | undefined {
  const value = fields.optional(param);
  if (value === undefined || typeof value === "boolean") return undefined;
  return new Failure(ROBOT.invalid_parameter, `${param} must be true or false`, { param });
}

export function noHandoff(fields: Fields): Failure | undefined {
  if (fields.optional("handoff") !== true) return undefined;
  return new Failure(ROBOT.handoff_unavailable, "this service hands no session over; leave handoff out or send false", {
    param: "handoff",
  });
}

export function seedOf(fields: Fields): number | Failure {
  const seed = fields.optional("seed") ?? 0;
  if (Number.isSafeInteger(seed) && Number(seed) >= 0) return Number(seed);
  return new Failure(ROBOT.invalid_parameter, `seed must be a whole number from 0 to ${LIMITS.seedMax}`, {
    param: "seed",
  });
}

export function sessionIdFault(fields: Fields): Failure | undefined {
  const id = fields.optional("session_id");
  if (id === undefined || (typeof id === "string" && sessionIdPattern.test(id))) return undefined;
  const message = `session_id must be 1 to ${LIMITS.sessionIdCharsMax} printable characters without surrounding spaces`;
  return new Failure(ROBOT.invalid_session_id, message, { param: "session_id" });
}

export function horizonFault(fields: Fields, rows: number): Failure | undefined {
  return integerInRange(fields, "action_horizon", rows, {
    invalid: ROBOT.action_horizon_invalid,
    outOfRange: ROBOT.action_horizon_out_of_range,
  });
}

export function inferenceStepsFault(fields: Fields): Failure | undefined {
  return integerInRange(fields, "num_inference_steps", LIMITS.inferenceStepsMax, {
    invalid: ROBOT.num_inference_steps_invalid,
    outOfRange: ROBOT.num_inference_steps_out_of_range,
  });
}

export function expectedStepFault(fields: Fields): Failure | undefined {
  const step = fields.optional("expected_step");
  if (step === undefined || (Number.isInteger(step) && Number(step) >= 0)) return undefined;
  const message = "expected_step must be a whole number of at least 0; send the session's next step or leave it out";
  return new Failure(ROBOT.invalid_expected_step, message, { param: "expected_step" });
}

export function observationIdFault(fields: Fields): Failure | undefined {
  const id = fields.optional("observation_id");
  if (id === undefined || (typeof id === "string" && observationIdPattern.test(id))) return undefined;
  const message = `observation_id must be 1 to ${LIMITS.observationIdCharsMax} characters of A-Z a-z 0-9 . _ : -`;
  return new Failure(ROBOT.invalid_observation_id, message, { param: "observation_id" });
}

/** An optional whole number from 1 to `max`. */
function integerInRange(
  fields: Fields,
  param: string,
  max: number,
  codes: { readonly invalid: Row; readonly outOfRange: Row },
): Failure | undefined {
  const value = fields.optional(param);
  if (value === undefined) return undefined;
  if (!Number.isInteger(value)) return new Failure(codes.invalid, `${param} must be a whole number`, { param });
  if (Number(value) >= 1 && Number(value) <= max) return undefined;
  return new Failure(codes.outOfRange, `${param} is ${value}, allowed is 1 to ${max}`, { param });
}
