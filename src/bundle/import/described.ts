/** What a layout says of a policy and its robot, and columns made of both. */
import type { Facts, PlainFacts } from "../architecture.ts";
import type { AnyArchitecture } from "../families.ts";
import type { NormStats } from "../manifest.ts";
import type { FeatureNorm } from "./processors.ts";
import type { Robot } from "./robot-file.ts";

type Untold<Of> = Omit<Of, "id" | "title" | "licence" | "source" | "cameras">;
/** Facts without what the command line and the robot file say. */
export interface Described<Of = Untold<Facts> | Untold<PlainFacts>> {
  readonly facts: Of;
  readonly architecture: AnyArchitecture;
  readonly norm: NormStats;
}

/** Facts of a policy that keeps nothing between its requests and sees one picture of each camera. Two observations run together. */
export const ONE_SHOT = {
  ...{ reference: false, stateful: false, frames: { first: 1, later: 1 } },
  ...{ guidance: null, memory: null, batch: 2 },
} as const;

/** What only the random weights of a reference bundle read of an architecture. */
export const IMPORTED = { seed: 0, tokenizer: { merges: 0 } } as const;

/** Pictures in −1 … 1, padded to their size. */
export const PADDED: Pick<Facts["image"], "resize" | "mean" | "std"> = {
  ...{ resize: "pad", mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] },
};

const SPACES = { joint: "joint_position", cartesian: "cartesian_position", vector: "vector" } as const;

/** Columns of state and action with their normalisation, and the statistics of as many columns. */
export function columnsOf(robot: Robot, state: FeatureNorm, action: FeatureNorm) {
  const statistics = ({ statistics }: FeatureNorm, columns: number) =>
    Object.fromEntries(Object.entries(statistics).map(([name, values]) => [name, values.slice(0, columns)]));
  return {
    state: {
      kind: robot.stateKind,
      columns: robot.state.map(({ name, unit, from = "state" as const, index }, at) => {
        return { name, unit, from, index: index ?? at, ...state.column };
      }),
    },
    action: {
      hz: robot.hz,
      space: SPACES[robot.stateKind],
      out_of_range: robot.outOfRange,
      columns: robot.actions.map(({ relative_to: _, relativeTo, ...column }) => {
        return { ...column, ...action.column, relative_to: relativeTo };
      }),
    },
    norm: {
      state: statistics(state, robot.state.length),
      action: statistics(action, robot.actions.length),
    },
  };
}
