/** A robot's state after the checks of its shape: what no arm can have, and the vector that the model reads. */
import type { Manifest } from "../bundle/manifest.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

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
