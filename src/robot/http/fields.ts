/**
 * The fields of an observation that HTTP and sockets share. Each has its JSON Schema, for people and programs, beside its rule, which
 * decides; a test sends to the route what the schemas accept and what they refuse, and compares.
 */
import { type NumberOptions, type TSchema, Type } from "@sinclair/typebox";
import { SPECIFIED_IDS } from "../../config/robot.ts";
import { Fault } from "../../engine/fault.ts";
import { type Check, optional } from "../../http/check.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { Failure, type Row } from "../../std/failure.ts";
import type { Catalog, Served } from "../catalog.ts";
import type { ObserveCommand } from "../command.ts";
import { ROBOT } from "../errors.ts";
import { failureOf } from "../faults.ts";
import { FLOAT32_LIMIT, readState } from "../state.ts";

/** The values that the checks have read. */
type Values = { -readonly [K in Exclude<keyof ObserveCommand, "served" | "frames">]?: NonNullable<ObserveCommand[K]> };

/** A message of a client while its fields are checked. */
export class FieldDraft {
  readonly values: Values = {};

  constructor(
    readonly body: Readonly<Record<string, unknown>>,
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

export class ModelDraft extends FieldDraft {
  constructor(
    body: FieldDraft["body"],
    readonly catalog: Catalog,
  ) {
    super(body);
  }
}

/** The rule of an optional field: what it may be, and the failure where it is something else. */
interface Rule<T> {
  readonly fits: (value: unknown) => value is T;
  readonly row: Row;
  readonly message: string;
}

function field<K extends keyof Values>(
  name: string,
  key: K,
  schema: TSchema,
  { fits, row, message }: Rule<NonNullable<Values[K]>>,
): Check<FieldDraft> {
  return {
    field: [name, optional(schema)],
    run(draft) {
      const value = draft.optional(name);
      if (value === undefined) return undefined;
      if (!fits(value)) return new Failure(row, message, { param: name });
      draft.values[key] = value;
      return undefined;
    },
  };
}

/** Failures: `model_missing`, `model_not_found`; `engine_unavailable` while the bundles are still being read. */
export const model: Check<ModelDraft> = {
  field: [
    "model",
    Type.String({
      minLength: 1,
      description: "A served model id, exactly as written; `GET /readyz` lists them.",
      examples: ["vendorB/molmoact2:yam"],
    }),
  ],
  run(draft) {
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
  },
};

/** The failure of an instruction that stands at `param`. */
export function instructionFault({ model, values }: FieldDraft, param: string): Failure | undefined {
  const { instruction = "" } = values;
  if (instruction.trim() === "") return noInstruction(param);
  // The engine bounds its own work: a text that cannot fit is refused before it is tokenised.
  const tokens = model.model?.measure({ instruction });
  return tokens instanceof Fault ? failureOf(tokens, param) : undefined;
}

export function noInstruction(param: string): Failure {
  const message = "frames came without an instruction; send a text that says what to do";
  return new Failure(ROBOT.instruction_missing, message, { param });
}

function flag(param: string, description: string): Check<FieldDraft> {
  return {
    field: [param, optional(Type.Boolean({ default: false, description }))],
    run(draft) {
      const value = draft.optional(param);
      if (value === undefined || typeof value === "boolean") return undefined;
      return new Failure(ROBOT.invalid_parameter, `${param} must be true or false`, { param });
    },
  };
}

export const stream = flag("stream", "`true` answers with server-sent events; see the 200 response.");

export const handoff = flag("handoff", "Must not be `true`: this service hands no session over.");

export const noHandoff: Check<FieldDraft> = {
  run(draft) {
    if (draft.optional("handoff") !== true) return undefined;
    const message = "this service hands no session over; leave handoff out or send false";
    return new Failure(ROBOT.handoff_unavailable, message, { param: "handoff" });
  },
};

function isWhole(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value);
}

export const seed = field(
  "seed",
  "seed",
  Type.Integer({
    minimum: 0,
    maximum: LIMITS.seedMax,
    default: 0,
    description:
      "Seed of the noise that a chunk is made from. Noise depends on bundle, seed and step alone: the same observations " +
      "from a session's first one on give the same chunks in any session, bit for bit on a CPU, within 1e-3 on a GPU.",
  }),
  {
    fits: (value): value is number => isWhole(value) && value >= 0 && value <= LIMITS.seedMax,
    row: ROBOT.invalid_parameter,
    message: `seed must be a whole number from 0 to ${LIMITS.seedMax}`,
  },
);

const { min: DEADLINE_MIN, max: DEADLINE_MAX } = LIMITS.deadlineMs;

export const deadline = field(
  "deadline_ms",
  "deadlineMs",
  Type.Number({
    minimum: DEADLINE_MIN,
    maximum: DEADLINE_MAX,
    description:
      "For how long the chunk is of use, milliseconds from the arrival of the request's last byte. An observation that cannot be " +
      "answered in that time is refused at once; one that is not ready when it has passed is taken back, also if the model is at " +
      "it. Both are `engine_unavailable` with `Retry-After`, cost nothing, and leave the step as it was; a repeat of the " +
      "`observation_id` runs anew. A chunk whose record is just being made durable then is answered and charged. A longer time " +
      "than the service allows for a chunk changes nothing. A repeat may have another one.",
  }),
  {
    fits: (value): value is number => typeof value === "number" && value >= DEADLINE_MIN && value <= DEADLINE_MAX,
    row: ROBOT.invalid_parameter,
    message: `deadline_ms must be a number of milliseconds from ${DEADLINE_MIN} to ${DEADLINE_MAX}; send for how long the chunk is of use, or leave it out`,
  },
);

const ENDED_HOURS = LIMITS.sessionEndedMs / 3_600_000;

/** Unicode scalar values outside the general categories C*, counted in code points, without white space at either end. */
const SESSION_ID = new RegExp(`^[^\\p{C}\\s](?:\\P{C}{0,${LIMITS.sessionIdCharsMax - 2}}[^\\p{C}\\s])?$`, "u");

export const sessionId = field(
  "session_id",
  "sessionId",
  Type.String({
    pattern: SESSION_ID.source,
    description:
      `Name of the episode, chosen by the client: 1 to ${LIMITS.sessionIdCharsMax} code points, all printable (none of ` +
      "Unicode's general categories C*), no white space at either end. Required with image parts by models that keep " +
      "memory over an episode. A new value starts a session; one whose session has ended within the last " +
      `${ENDED_HOURS} hours answers \`session_expired\`. Scoped to account and model. ` +
      "Without it each request stands alone: it takes no slot, and the `anon-` id in its chunk cannot be used again.",
  }),
  {
    fits: (value): value is string => typeof value === "string" && SESSION_ID.test(value),
    row: ROBOT.invalid_session_id,
    message: `session_id must be 1 to ${LIMITS.sessionIdCharsMax} printable characters without surrounding spaces`,
  },
);

export const expectedStep = field(
  "expected_step",
  "expectedStep",
  Type.Integer({
    minimum: 0,
    description:
      "The session's next step as the client counts it, a guard against lost or doubled requests and against a second robot under " +
      "the same `session_id`. A difference is " +
      "`session_step_conflict`, and nothing runs. Above 0 it needs a live session: without `session_id` it conflicts, with an " +
      "unknown one it is `session_expired`.",
  }),
  {
    fits: (value): value is number => isWhole(value) && value >= 0,
    row: ROBOT.invalid_expected_step,
    message: "expected_step must be a whole number of at least 0; send the session's next step or leave it out",
  },
);

const OBSERVATION_ID = new RegExp(`^[A-Za-z0-9._:-]{1,${LIMITS.observationIdCharsMax}}$`);

export function isObservationId(value: unknown): value is string {
  return typeof value === "string" && OBSERVATION_ID.test(value);
}

export const observationId = field(
  "observation_id",
  "observationId",
  Type.String({
    pattern: OBSERVATION_ID.source,
    description:
      "Makes the request safe to repeat. The same id with the same observation (model, session, instruction, frames, state, " +
      "`expected_step`, `action_horizon`, `num_inference_steps`, `seed`; over HTTP or on a socket) returns the first answer " +
      "with no new execution and no charge, and says `Idempotent-Replayed: true`; with another observation it is " +
      "`idempotency_conflict`. `stream` and `deadline_ms` may differ. The replay comes before the session's " +
      "checks, so an old step can be replayed after the session has moved on. A failed run frees the id. Results are kept " +
      `for at least ${LIMITS.replyKeptMs / 60_000} minutes after the session ends, ids for ${ENDED_HOURS} hours. Scoped to account, model and session.`,
  }),
  {
    fits: isObservationId,
    row: ROBOT.invalid_observation_id,
    message: `observation_id must be 1 to ${LIMITS.observationIdCharsMax} characters of A-Z a-z 0-9 . _ : -`,
  },
);

/** An optional whole number from 1 to what `most` says, with a failure for another type and one for another number. */
function count(
  name: "action_horizon" | "num_inference_steps",
  key: "rows" | "inferenceSteps",
  schema: TSchema,
  most: (draft: FieldDraft) => number,
): Check<FieldDraft> {
  return {
    field: [name, optional(schema)],
    run(draft) {
      const value = draft.optional(name);
      if (value === undefined) return undefined;
      const param = { param: name };
      if (!isWhole(value)) return new Failure(ROBOT[`${name}_invalid`], `${name} must be a whole number`, param);
      const max = most(draft);
      if (value < 1 || value > max)
        return new Failure(ROBOT[`${name}_out_of_range`], `${name} is ${value}, allowed is 1 to ${max}`, param);
      draft.values[key] = value;
      return undefined;
    },
  };
}

export const horizon = count(
  "action_horizon",
  "rows",
  Type.Integer({
    minimum: 1,
    maximum: LIMITS.chunkRowsMax,
    description:
      `Rows to answer, at most the model's rows per chunk, and ${LIMITS.actionHorizonMax} unless its id is the operator's own; ` +
      "default all. The model computes and bills the whole chunk.",
  }),
  ({ model: { manifest } }) =>
    Math.min(manifest.action.rows, SPECIFIED_IDS.includes(manifest.id) ? LIMITS.actionHorizonMax : LIMITS.chunkRowsMax),
);

export const inferenceSteps = count(
  "num_inference_steps",
  "inferenceSteps",
  Type.Integer({
    minimum: 1,
    maximum: LIMITS.inferenceStepsMax,
    description: "Accepted for compatibility; no model reads it.",
  }),
  () => LIMITS.inferenceStepsMax,
);

const FLOAT32 = { exclusiveMinimum: -FLOAT32_LIMIT, exclusiveMaximum: FLOAT32_LIMIT };
const float32 = Type.Number(FLOAT32);

const numbers = (length: number, description: string, range: NumberOptions = {}) =>
  Type.Array(Type.Number({ ...FLOAT32, ...range }), {
    minItems: length,
    maxItems: length,
    description,
  });

const jointState = Type.Object(
  {
    joint_position: numbers(12, "Radians: left joints 1 to 6, then right joints 1 to 6."),
    gripper_position: numbers(2, "Left, then right: 0 is closed, 1 is open.", { minimum: 0, maximum: 1 }),
  },
  { title: "Joint state", description: "For models with joint state. `cartesian_position` is ignored." },
);

const cartesianState = Type.Object(
  {
    joint_position: optional(numbers(0, "Empty, or left out.")),
    gripper_position: numbers(2, "Left, then right, in the checkpoint's own gripper units."),
    cartesian_position: numbers(
      18,
      "Left xyz in metres and rotation6d, then right the same. A rotation6d is the first two columns of the rotation " +
        "matrix, one after the other; neither may be shorter than 1e-6, nor the two within 1e-4 of parallel.",
    ),
  },
  { title: "Cartesian state", description: "For models with Cartesian state." },
);

const vectorState = Type.Object(
  {
    state: Type.Array(float32, {
      minItems: 1,
      maxItems: LIMITS.stateValuesMax,
      description:
        "Exactly one value for each state column of the model, in the order and the units of `state_columns` in " +
        "`GET /v1/robot/models`.",
    }),
  },
  { title: "Vector state", description: "For models of other robots, under ids of the operator's own." },
);

export const robotState: Check<FieldDraft> = {
  field: [
    "robot_state",
    Type.Union([jointState, cartesianState, vectorState], {
      description:
        "The robot's state when the frames were taken; its shape is the model's, which `GET /v1/robot/models` names. All values " +
        "are finite as float32.",
    }),
  ],
  run(draft) {
    const state = readState(draft.body.robot_state, draft.model.manifest.state);
    if (state instanceof Failure) return state;
    draft.values.state = state;
    return undefined;
  },
};
