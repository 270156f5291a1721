/** The state of a robot: its shape on the wire, its vector for the model, and the values that no arm can have. */
import type { Manifest } from "../bundle/manifest.ts";
import { type StateShape, stateShape } from "../bundle/state-shape.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

export type StateKind = Manifest["state"]["kind"];
type ArrayName = Manifest["state"]["columns"][number]["from"];

/** The arrays of a complete state: exact lengths, all values finite float32. */
export type RobotState = Readonly<Partial<Record<ArrayName, readonly number[]>>>;

/** The model's vector, in the order of the manifest's columns. */
export function stateVector(manifest: Manifest, state: RobotState): Float32Array {
  return Float32Array.from(manifest.state.columns, ({ from, index }) => state[from]?.[index] ?? 0);
}

/** `stateVector` backwards: a state as robots send it, each value in the array that it is read from. */
export function robotStateOf({ state }: Pick<Manifest, "state">, vector: ArrayLike<number>): RobotState {
  const arrays: Partial<Record<ArrayName, number[]>> = {};
  for (const [at, { from, index }] of state.columns.entries()) {
    arrays[from] ??= [];
    arrays[from][index] = vector[at] ?? 0;
  }
  return arrays;
}

/** Position and rotation6d of an arm. */
const POSE = [0, 0, 0, 1, 0, 0, 0, 1, 0];

interface Named {
  readonly name: string;
}
interface Ranged extends Named {
  readonly min: number;
  readonly max: number;
}

/** A state that every robot of a model may be in, for requests that are made up. A value of a vector is inside the range of the rows' column of its name. */
export function restingState(
  kind: StateKind,
  state: { readonly columns: readonly Named[] },
  action: { readonly columns: readonly Ranged[] },
): RobotState {
  const gripper_position = [0, 0];
  if (kind === "joint") return { joint_position: Array(12).fill(0), gripper_position };
  if (kind === "cartesian") return { joint_position: [], gripper_position, cartesian_position: [...POSE, ...POSE] };
  const ranges = new Map(action.columns.map((column) => [column.name, column]));
  const restingAt = ({ name }: Named): number => {
    const { min = 0, max = 0 } = ranges.get(name) ?? {};
    return Math.min(Math.max(0, min), max);
  };
  return { state: state.columns.map(restingAt) };
}

const COLUMN_LENGTH_MIN = 1e-6;
const COLUMN_SINE_MIN = 1e-4;

/** Values that no arm can have: `invalid_image`, as the specification says, with the state field as `param`. */
export function stateFault(kind: StateKind, state: RobotState): Failure | undefined {
  if (kind === "vector") return undefined;
  if (kind === "joint") {
    if (state.gripper_position?.every((opening) => opening >= 0 && opening <= 1)) return undefined;
    return new Failure(ROBOT.invalid_image, "a gripper is outside 0 to 1; send 0 for closed up to 1 for open", {
      param: "robot_state.gripper_position",
    });
  }
  // Per arm: three values of position, then the two columns of the rotation.
  const degenerate = [3, 12].some((start) => isDegenerate(state.cartesian_position?.slice(start, start + 6) ?? []));
  if (!degenerate) return undefined;
  return new Failure(ROBOT.invalid_image, "a rotation6d has a column of length 0, or its two columns are parallel", {
    param: "robot_state.cartesian_position",
  });
}

/** A column is shorter than 1e-6, or the two are within 1e-4 (radians) of parallel. */
function isDegenerate(rotation: readonly number[]): boolean {
  const [ax = 0, ay = 0, az = 0, bx = 0, by = 0, bz = 0] = rotation;
  const lengthA = Math.hypot(ax, ay, az);
  const lengthB = Math.hypot(bx, by, bz);
  if (lengthA < COLUMN_LENGTH_MIN || lengthB < COLUMN_LENGTH_MIN) return true;
  const [ux, uy, uz] = [ax / lengthA, ay / lengthA, az / lengthA];
  const [vx, vy, vz] = [bx / lengthB, by / lengthB, bz / lengthB];
  return Math.hypot(uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx) < COLUMN_SINE_MIN;
}

/** Arrays that a state of these shapes has, empty where it has none: the digests of observations that are kept depend on them. */
const NONE: RobotState = { joint_position: [], gripper_position: [], cartesian_position: [] };

/** A number of this size or more rounds to infinity as a float32, in which models compute. */
export const FLOAT32_LIMIT = 2 ** 128 - 2 ** 103;

/** Failures: `state_missing`, `state_shape_mismatch`. */
export function readState(value: unknown, { kind, columns }: Manifest["state"]): RobotState | Failure {
  const shape = stateShape(kind, columns.length);
  if (value === undefined || value === null) {
    return new Failure(
      ROBOT.state_missing,
      `a request with images needs robot_state; send ${shapeWords(shape)} numbers`,
      {
        param: "robot_state",
      },
    );
  }
  const mismatch = (param: string) =>
    new Failure(
      ROBOT.state_shape_mismatch,
      `${param} does not fit this model; send ${shapeWords(shape)} finite numbers`,
      {
        param,
      },
    );
  if (!isPlainObject(value)) return mismatch("robot_state");
  const state: Partial<Record<ArrayName, readonly number[]>> = kind === "vector" ? {} : { ...NONE };
  for (const [name, count] of Object.entries(shape) as [ArrayName, number][]) {
    const given = value[name] ?? (count === 0 ? [] : undefined);
    const numbers = finiteNumbers(given, count);
    if (!numbers) return mismatch(`robot_state.${name}`);
    state[name] = numbers;
  }
  return state;
}

/** `joint_position of 12, gripper_position of 2`. */
function shapeWords(shape: StateShape): string {
  const words = Object.entries(shape).map(([name, count]) => `${name} of ${count}`);
  return words.join(", ");
}

/** A long text of a large body is an object too, but not a plain one. */
function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function finiteNumbers(value: unknown, count: number): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length !== count) return undefined;
  return value.every((item) => typeof item === "number" && Math.abs(item) < FLOAT32_LIMIT) ? value : undefined;
}
