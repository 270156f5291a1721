/** `robot_state` on the wire: its shapes and their checks. */
import { type NumberOptions, Type } from "@sinclair/typebox";
import { optional } from "../../http/check.ts";
import { isObject } from "../../http/json.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";
import type { RobotState, StateKind } from "../state.ts";

type ArrayName = keyof RobotState;

/** Values per array; an array that is not named is ignored, one of 0 values may be absent. */
const SHAPES: Readonly<Record<StateKind, Partial<Record<ArrayName, number>>>> = {
  joint: { joint_position: 12, gripper_position: 2 },
  cartesian: { joint_position: 0, gripper_position: 2, cartesian_position: 18 },
};

/** From this size on a number rounds to infinity as a float32, in which models compute. */
const FLOAT32_LIMIT = 2 ** 128 - 2 ** 103;

const values = (count: number, description: string, range: NumberOptions = {}) =>
  Type.Array(Type.Number({ exclusiveMinimum: -FLOAT32_LIMIT, exclusiveMaximum: FLOAT32_LIMIT, ...range }), {
    minItems: count,
    maxItems: count,
    description,
  });

export const robotStateSchema = Type.Union(
  [
    Type.Object(
      {
        joint_position: values(12, "Radians: left joints 1 to 6, then right joints 1 to 6."),
        gripper_position: values(2, "Left, then right: 0 is closed, 1 is open.", { minimum: 0, maximum: 1 }),
      },
      { title: "Joint state", description: "For models with joint state. `cartesian_position` is ignored." },
    ),
    Type.Object(
      {
        joint_position: optional(values(0, "Empty, or left out.")),
        gripper_position: values(2, "Left, then right, in the checkpoint's own gripper units."),
        cartesian_position: values(
          18,
          "Left xyz in metres and rotation6d, then right the same. A rotation6d is the first two columns of the rotation " +
            "matrix, one after the other; neither may be shorter than 1e-6, nor the two within 1e-4 of parallel.",
        ),
      },
      { title: "Cartesian state", description: "For models with Cartesian state." },
    ),
  ],
  {
    description:
      "The robot's state when the frames were taken; its shape depends on the model. All values are finite as float32.",
  },
);

/** Failures: `state_missing`, `state_shape_mismatch`. */
export function readState(value: unknown, kind: StateKind): RobotState | Failure {
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
  if (!isObject(value)) return mismatch("robot_state");
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

function finiteNumbers(value: unknown, count: number): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length !== count) return undefined;
  return value.every((item) => typeof item === "number" && Math.abs(item) < FLOAT32_LIMIT) ? value : undefined;
}
