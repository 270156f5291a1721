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
