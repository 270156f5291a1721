/** ACT's folder as LeRobot writes it: configuration, processors, and the facts of a bundle. */
import { Problem } from "../../std/problem.ts";
import type { ActArchitecture } from "../act.ts";
import type { PlainFacts } from "../architecture.ts";
import { featureEdge } from "../resnet.ts";
import { ActConfig, actArchitecture, ENVIRONMENT, type Observed, observedOf } from "./act.ts";
import { actTable, isUnusedOfAct } from "./act-weights.ts";
import { columnsOf, type Described, ONE_SHOT } from "./described.ts";
import type { Found, Layout } from "./found.ts";
import { ADVICE, readLeRobot, STATE } from "./lerobot.ts";
import type { FeatureNorm, Processors } from "./processors.ts";
import { cameraOf, type Robot } from "./robot-file.ts";

export const ACT: Layout = {
  plainName: (name) => name,
  async read(dir, tensors, licence): Promise<Found | Problem> {
    const read = await readLeRobot(dir, ActConfig, licence);
    if (read instanceof Problem) return read;
    const { path, config, processors, files, policy } = read;
    const observed = observedOf(config);
    if (typeof observed === "string") return new Problem(`${path}: ${observed}; ${ADVICE}`);
    const architecture = actArchitecture(config, observed, tensors);
    return {
      ...{ layout: "LeRobot ACT", title: "ACT", files },
      policy: { ...policy, stateColumns: observed.state + observed.environment },
      isUnused: isUnusedOfAct,
      table: actTable(architecture),
      describe: (robot) => describeAct({ observed, architecture, rows: config.chunk_size }, processors, robot),
    };
  },
};

interface Policy {
  readonly observed: Observed;
  readonly architecture: ActArchitecture;
  readonly rows: number;
}

function describeAct(
  { observed, architecture, rows }: Policy,
  processors: Processors,
  robot: Robot,
): Described | Problem {
  const { views, width, height, environment } = observed;
  const shown = views.map((key) => cameraOf(robot, key) ?? "");
  const missing = views.find((_, index) => shown[index] === "");
  if (missing !== undefined)
    return new Problem(`the robot file has no camera for ${missing}, and ACT has no missing one; name it in cameras`);
  const states = [STATE, ...(environment > 0 ? [ENVIRONMENT] : [])].map((key) => processors.observation(key));
  const pictures = views.map((key) => processors.observation(key));
  for (const norm of [...states, ...pictures]) if (norm instanceof Problem) return norm;
  const [state = UNCHANGED, more] = states as FeatureNorm[];
  if (more && !Bun.deepEquals(more.column, state.column))
    return new Problem(`${STATE} and ${ENVIRONMENT} are normalised in two ways, expected one; ${ADVICE}`);
  const each = (pictures as FeatureNorm[]).map(pictureScale);
  const odd = views.find((_, at) => !Object.values(each[at] ?? {}).every((values) => values.every(Number.isFinite)));
  if (odd !== undefined)
    return new Problem(`the statistics of ${odd} are not all finite, expected one of each channel; ${ADVICE}`);
  const first = pictureScale((pictures as FeatureNorm[])[0] ?? UNCHANGED);
  const alike = each.every((scale) => Bun.deepEquals(scale, first));
  const columns = columnsOf(robot, more ? joined(state, more) : state, processors.action);
  const { backbone } = architecture;
  const facts: Omit<PlainFacts, "id" | "title" | "licence" | "source" | "cameras"> = {
    ...{ ...ONE_SHOT, family: "act", prompt: null, flow: null },
    image: {
      ...{ width, height, resize: "exact" },
      tokens: featureEdge(width, backbone) * featureEdge(height, backbone),
      ...(alike ? first : pictureScale(UNCHANGED)),
    },
    state: { ...columns.state, width: columns.state.columns.length },
    action: { ...columns.action, rows, width: columns.action.columns.length, rotation6d: [] },
  };
  const named = { ...architecture, views: shown, ...(!alike && { pictures: each }) };
  return { facts, architecture: named, norm: columns.norm };
}

const UNCHANGED: FeatureNorm = { column: { norm: "none" }, statistics: {} };

/** Statistics of the robot's columns, then those of the environment's. */
function joined(state: FeatureNorm, more: FeatureNorm): FeatureNorm {
  const names = Object.keys(state.statistics);
  const both = names.map((name) => [name, [...(state.statistics[name] ?? []), ...(more.statistics[name] ?? [])]]);
  return { column: state.column, statistics: Object.fromEntries(both) };
}

/** (value − mean) / std of each channel, for any of LeRobot's modes. A deviation is float32 with LeRobot's epsilon. */
function pictureScale({ column, statistics }: FeatureNorm) {
  const { norm, epsilon = 0 } = column;
  const channels = [0, 1, 2];
  const value = (name: string, at: number) => statistics[name]?.[at] ?? Number.NaN;
  if (norm === "none") return { mean: [0, 0, 0], std: [1, 1, 1] };
  if (norm === "mean_std") {
    const std = channels.map((at) => Math.fround(value("std", at) + epsilon));
    return { mean: channels.map((at) => value("mean", at)), std };
  }
  const [low, high] = norm === "min_max" ? ["min", "max"] : ["q01", "q99"];
  const range = (at: number) => value(high, at) - value(low, at) || epsilon;
  return {
    mean: channels.map((at) => value(low, at) + range(at) / 2),
    std: channels.map((at) => range(at) / 2),
  };
}
