/** The fields that both transports have. Each check puts the value of its field into a draft, or returns the failure. */

import type { Manifest } from "../bundle/manifest.ts";
import { Fault, tooLong } from "../engine/fault.ts";
import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import { Failure, type Row } from "../std/failure.ts";
import type { Catalog, Served } from "./catalog.ts";
import { ROBOT } from "./errors.ts";
import { failureOf } from "./faults.ts";

/** A JSON object of a client. */
type Fields = Readonly<Record<string, unknown>>;

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
    readonly body: Fields,
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
    body: Fields,
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
  return tokens instanceof Fault ? failureOf(tokens, param) : undefined;
}

export function noInstruction(param: string): Failure {
  const message = "frames came without an instruction; send a text that says what to do";
  return new Failure(ROBOT.instruction_missing, message, { param });
}

/** Of a text that no model's prompt has room for. */
export function longInstruction(param: string): Failure {
  return failureOf(tooLong(), param);
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

/** The start-of-image marker and the first byte of the next one. */
export function startsAsJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff;
}

/** `where`: the request field, where it has one. */
export function jpegSizeFault(bytes: number, where: { readonly param?: string } = {}): Failure | undefined {
  if (bytes <= LIMITS.jpegBytesMax) return undefined;
  const message = `the JPEG has ${bytes} bytes, at most ${LIMITS.jpegBytesMax} are allowed; compress it more strongly`;
  return new Failure(ROBOT.image_too_large, message, where);
}

export type StateKind = Manifest["state"]["kind"];

/** The arrays of a complete state: exact lengths, all values finite float32. Empty where the shape has none. */
export interface RobotState {
  readonly joint_position: readonly number[];
  readonly gripper_position: readonly number[];
  readonly cartesian_position: readonly number[];
}

/** The model's vector, in the order of the manifest's columns. */
export function stateVector(manifest: Manifest, state: RobotState): Float32Array {
  return Float32Array.from(manifest.state.columns, (column) => state[column.from][column.index] ?? 0);
}

const COLUMN_LENGTH_MIN = 1e-6;
const COLUMN_SINE_MIN = 1e-4;

/** Values that no arm can have: `invalid_image`, as the specification says, with the state field as `param`. */
export function stateFault(kind: StateKind, state: RobotState): Failure | undefined {
  if (kind === "joint") {
    if (state.gripper_position.every((opening) => opening >= 0 && opening <= 1)) return undefined;
    return new Failure(ROBOT.invalid_image, "a gripper is outside 0 to 1; send 0 for closed up to 1 for open", {
      param: "robot_state.gripper_position",
    });
  }
  // Per arm: three values of position, then the two columns of the rotation.
  const degenerate = [3, 12].some((start) => isDegenerate(state.cartesian_position.slice(start, start + 6)));
  if (!degenerate) return undefined;
  return new Failure(ROBOT.invalid_image, "a rotation6d has a column of length 0, or its two columns are parallel", {
    param: "robot_state.cartesian_position",
  });
}

/** Whether a column is shorter than 1e-6, or the two are within 1e-4 (radians) of parallel. */
function isDegenerate(rotation: readonly number[]): boolean {
  const [ax = 0, ay = 0, az = 0, bx = 0, by = 0, bz = 0] = rotation;
  const lengthA = Math.hypot(ax, ay, az);
  const lengthB = Math.hypot(bx, by, bz);
  if (lengthA < COLUMN_LENGTH_MIN || lengthB < COLUMN_LENGTH_MIN) return true;
  const [ux, uy, uz] = [ax / lengthA, ay / lengthA, az / lengthA];
  const [vx, vy, vz] = [bx / lengthB, by / lengthB, bz / lengthB];
  return Math.hypot(uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx) < COLUMN_SINE_MIN;
}

type ArrayName = keyof RobotState;

/** Values per array; an array that is not named is ignored, one of 0 values may be absent. */
const SHAPES: Readonly<Record<StateKind, Partial<Record<ArrayName, number>>>> = {
  joint: { joint_position: 12, gripper_position: 2 },
  cartesian: { joint_position: 0, gripper_position: 2, cartesian_position: 18 },
};

/** From this size on a number rounds to infinity as a float32, in which models compute. */
export const FLOAT32_LIMIT = 2 ** 128 - 2 ** 103;

/** Failures: `state_missing`, `state_shape_mismatch`. */
function readState(value: unknown, kind: StateKind): RobotState | Failure {
  const shape = SHAPES[kind];
  const shapeText = Object.entries(shape)
    .map(([name, count]) => `${name} of ${count}`)
    .join(", ");
  if (value === undefined || value === null) {
    return new Failure(ROBOT.state_missing, `a request with images needs robot_state; send ${shapeText} numbers`, {
      param: "robot_state",
    });
  }
  const mismatch = (param: string) =>
    new Failure(ROBOT.state_shape_mismatch, `${param} does not fit this model; send ${shapeText} finite numbers`, {
      param,
    });
  if (!isPlainObject(value)) return mismatch("robot_state");
  const state: Record<ArrayName, readonly number[]> = {
    joint_position: [],
    gripper_position: [],
    cartesian_position: [],
  };
  for (const [name, count] of Object.entries(shape) as [ArrayName, number][]) {
    const given = value[name] ?? (count === 0 ? [] : undefined);
    const numbers = finiteNumbers(given, count);
    if (!numbers) return mismatch(`robot_state.${name}`);
    state[name] = numbers;
  }
  return state;
}

/** A long text of a large body is an object too, but not a plain one. */
function isPlainObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function finiteNumbers(value: unknown, count: number): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length !== count) return undefined;
  return value.every((item) => typeof item === "number" && Math.abs(item) < FLOAT32_LIMIT) ? value : undefined;
}
