/** The fields that both transports of an observation have: each check puts its field's value into a draft, or says what is wrong. */
import { tooLong } from "../../engine/busy.ts";
import type { JsonObject } from "../../http/json.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { Failure, type Row } from "../../std/failure.ts";
import type { Catalog, Served } from "../catalog.ts";
import { ROBOT } from "../errors.ts";
import type { RobotState } from "../state.ts";
import { readState } from "./state.ts";

/** What the checks of an observation's fields fill in. */
export class FieldDraft {
  instruction = "";
  state: RobotState | undefined;
  sessionId: string | undefined;
  observationId: string | undefined;
  expectedStep: number | undefined;
  /** Rows to answer, where the client says how many. */
  rows: number | undefined;
  inferenceSteps: number | undefined;
  seed = 0;
  deadlineMs: number | undefined;

  constructor(
    readonly body: JsonObject,
    public served: Served | undefined = undefined,
  ) {}

  /** The model that an earlier check found. */
  get model(): Served {
    return present(this.served, "the served model");
  }

  /** The field's value; `null` in an optional field equals its absence. */
  optional(name: string): unknown {
    return this.body[name] ?? undefined;
  }
}

/** Of a message that names its model. */
export class ModelDraft extends FieldDraft {
  constructor(
    body: JsonObject,
    readonly catalog: Catalog,
  ) {
    super(body);
  }
}

export const observationIdPattern = new RegExp(`^[A-Za-z0-9._:-]{1,${LIMITS.observationIdCharsMax}}$`);

/** Unicode scalar values outside the general categories C*, counted in code points, without white space at either end. */
export const sessionIdPattern = new RegExp(
  `^[^\\p{C}\\s](?:\\P{C}{0,${LIMITS.sessionIdCharsMax - 2}}[^\\p{C}\\s])?$`,
  "u",
);

/** Failures: `model_missing`, `model_not_found`; `engine_unavailable` while the bundles are still being read. */
export function model(draft: ModelDraft): Failure | undefined {
  const { catalog } = draft;
  const id = draft.optional("model");
  if (id === undefined || id === "") {
    const message = `model is missing; served: ${catalog.ids.join(", ")}`;
    return new Failure(ROBOT.model_missing, message, { param: "model" });
  }
  draft.served = typeof id === "string" ? catalog.models.get(id) : undefined;
  if (draft.served) return undefined;
  if (!catalog.known) return new Failure(ROBOT.engine_unavailable, "the service is starting; retry in a second");
  const message = `this model is not served; use one of: ${catalog.ids.join(", ")}`;
  return new Failure(ROBOT.model_not_found, message, { param: "model" });
}

/** `param`: where the text of the draft's instruction stands. */
export function instruction({ model, instruction }: FieldDraft, param: string): Failure | undefined {
  if (instruction.trim() === "") return noInstruction(param);
  // The engine bounds its own work: a text that cannot fit is refused before it is tokenised.
  const tokens = model.model?.measure({ instruction });
  return tokens instanceof Failure ? new Failure(tokens.row, tokens.message, { param }) : undefined;
}

export function noInstruction(param: string): Failure {
  const message = "frames came without an instruction; send a text that says what to do";
  return new Failure(ROBOT.instruction_missing, message, { param });
}

/** Of a text that no model's prompt has room for. */
export function longInstruction(param: string): Failure {
  const { row, message } = tooLong();
  return new Failure(row, message, { param });
}

export function flag(draft: FieldDraft, param: "stream" | "handoff"): Failure | undefined {
  const value = draft.optional(param);
  if (value === undefined || typeof value === "boolean") return undefined;
  return new Failure(ROBOT.invalid_parameter, `${param} must be true or false`, { param });
}

export function noHandoff(draft: FieldDraft): Failure | undefined {
  if (draft.optional("handoff") !== true) return undefined;
  const message = "this service hands no session over; leave handoff out or send false";
  return new Failure(ROBOT.handoff_unavailable, message, { param: "handoff" });
}

export function seed(draft: FieldDraft): Failure | undefined {
  const seed = draft.optional("seed") ?? 0;
  if (!isCount(seed)) {
    const message = `seed must be a whole number from 0 to ${LIMITS.seedMax}`;
    return new Failure(ROBOT.invalid_parameter, message, { param: "seed" });
  }
  draft.seed = seed;
  return undefined;
}

export function deadline(draft: FieldDraft): Failure | undefined {
  const ms = draft.optional("deadline_ms");
  const { min, max } = LIMITS.deadlineMs;
  if (ms !== undefined && !(typeof ms === "number" && ms >= min && ms <= max)) {
    const message = `deadline_ms must be a number of milliseconds from ${min} to ${max}; send for how long the chunk is of use, or leave it out`;
    return new Failure(ROBOT.invalid_parameter, message, { param: "deadline_ms" });
  }
  draft.deadlineMs = ms;
  return undefined;
}

export function sessionId(draft: FieldDraft): Failure | undefined {
  const id = draft.optional("session_id");
  if (id !== undefined && !(typeof id === "string" && sessionIdPattern.test(id))) {
    const message = `session_id must be 1 to ${LIMITS.sessionIdCharsMax} printable characters without surrounding spaces`;
    return new Failure(ROBOT.invalid_session_id, message, { param: "session_id" });
  }
  draft.sessionId = id;
  return undefined;
}

export function robotState(draft: FieldDraft): Failure | undefined {
  const state = readState(draft.body.robot_state, draft.model.manifest.state.kind);
  if (state instanceof Failure) return state;
  draft.state = state;
  return undefined;
}

export function horizon(draft: FieldDraft): Failure | undefined {
  const most = Math.min(draft.model.manifest.action.rows, LIMITS.actionHorizonMax);
  const rows = integerInRange(draft, "action_horizon", most, {
    invalid: ROBOT.action_horizon_invalid,
    outOfRange: ROBOT.action_horizon_out_of_range,
  });
  if (rows instanceof Failure) return rows;
  draft.rows = rows;
  return undefined;
}

export function inferenceSteps(draft: FieldDraft): Failure | undefined {
  const steps = integerInRange(draft, "num_inference_steps", LIMITS.inferenceStepsMax, {
    invalid: ROBOT.num_inference_steps_invalid,
    outOfRange: ROBOT.num_inference_steps_out_of_range,
  });
  if (steps instanceof Failure) return steps;
  draft.inferenceSteps = steps;
  return undefined;
}

export function expectedStep(draft: FieldDraft): Failure | undefined {
  const step = draft.optional("expected_step");
  if (step !== undefined && !(typeof step === "number" && Number.isInteger(step) && step >= 0)) {
    const message = "expected_step must be a whole number of at least 0; send the session's next step or leave it out";
    return new Failure(ROBOT.invalid_expected_step, message, { param: "expected_step" });
  }
  draft.expectedStep = step;
  return undefined;
}

export function observationId(draft: FieldDraft): Failure | undefined {
  const id = draft.optional("observation_id");
  if (id !== undefined && !(typeof id === "string" && observationIdPattern.test(id))) {
    const message = `observation_id must be 1 to ${LIMITS.observationIdCharsMax} characters of A-Z a-z 0-9 . _ : -`;
    return new Failure(ROBOT.invalid_observation_id, message, { param: "observation_id" });
  }
  draft.observationId = id;
  return undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** An optional whole number from 1 to `max`. */
function integerInRange(
  draft: FieldDraft,
  param: string,
  max: number,
  rows: { readonly invalid: Row; readonly outOfRange: Row },
): number | undefined | Failure {
  const value = draft.optional(param);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    return new Failure(rows.invalid, `${param} must be a whole number`, { param });
  }
  if (value >= 1 && value <= max) return value;
  return new Failure(rows.outOfRange, `${param} is ${value}, allowed is 1 to ${max}`, { param });
}
