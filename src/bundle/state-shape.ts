/** The arrays of `robot_state` on the wire and their lengths. */
import type { Manifest } from "./manifest.ts";

type State = Manifest["state"];

/** Values per array; an array that is not named is ignored, one of 0 values may be absent. */
export type StateShape = Readonly<Partial<Record<State["columns"][number]["from"], number>>>;

const SHAPES: Readonly<Record<Exclude<State["kind"], "vector">, StateShape>> = {
  joint: { joint_position: 12, gripper_position: 2 },
  cartesian: { joint_position: 0, gripper_position: 2, cartesian_position: 18 },
};

export const stateShape = (kind: State["kind"], columns: number): StateShape =>
  kind === "vector" ? { state: columns } : SHAPES[kind];
