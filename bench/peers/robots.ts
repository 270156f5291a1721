/** Robots of tendon and of the peers: each its own process, with the client library that is usual there. */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { startChild } from "../../src/measure/child.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_STATE } from "../../src/measure/sample/observation.ts";
import { summary } from "../../src/measure/stats.ts";
import { Problem } from "../../src/std/problem.ts";
import { processorTime, since } from "../process.ts";
import type { Figure } from "../proof.ts";
import { type Column, type Contender, type Rounds, type Runner, ratio, shownOf } from "../turns.ts";
import { pythonOf } from "./install.ts";
import { PeerProcess } from "./process.ts";

/** The bundle of the sample's model. */
export const BUNDLE = join(import.meta.dir, "../../dist/models/molmoact2-yam");
const ROBOTS = join(import.meta.dir, "robots.py");
/** Threads of ONNX Runtime, in tendon and in the peers. */
export const THREADS = 1;

/** `none`: rows cost nothing. `bundle`: the reference bundle on the CPU. */
type Model = "none" | "bundle";

export interface Drive {
  readonly model: Model;
  /** Robots at once, beside one robot alone. */
  readonly robots: number;
  /** Observations of one turn of the robot that is alone. */
  readonly alone: number;
  /** The same of each of the robots at once; 0: they are not driven. */
  readonly crowd: number;
}

interface Driven {
  /** Time of each observation, by the client's clock. */
  readonly ms: readonly number[];
  readonly seconds: number;
  /** Time of all threads of the server's process. */
  readonly processorMs: number;
}

interface Turn {
  readonly alone: Driven;
  readonly crowd: Driven | undefined;
}

/** A server that runs, and the command of a robot of it. */
interface Server {
  readonly pid: number;
  robot(folder: string, name: string): readonly string[];
  stop(): Promise<unknown>;
}

/** The pairs that are compared: ours, and the peer with the same protocol. */
const PAIRS = [
  { own: "tendon, HTTP", peer: "FastAPI /act" },
  { own: "tendon, socket", peer: "openpi WebSocket" },
] as const;

/** All of `PAIRS`, or ours alone. `folders` hold the frames, one for each robot in turn. */
export function robotContenders(drive: Drive, folders: readonly string[], peers: boolean): Contender<Turn>[] {
  const contender = (name: string, own: boolean, serve: () => Promise<Server | Problem>): Contender<Turn> => ({
    name,
    own,
    start: async () => {
      const server = await serve();
      return server instanceof Problem ? server : await withRobots(name, server, drive, folders);
    },
  });
  const [act, openpi] = PAIRS;
  const ours = [
    contender(act.own, true, () => tendon("http", drive.model)),
    contender(openpi.own, true, () => tendon("socket", drive.model)),
  ];
  if (!peers) return ours;
  return [
    ...ours,
    contender(act.peer, false, () => peer("act", drive.model)),
    contender(openpi.peer, false, () => peer("openpi", drive.model)),
  ];
}

async function tendon(way: "http" | "socket", model: Model): Promise<Server | Problem> {
  const options = model === "none" ? { device: "echo" } : { device: "cpu", configuration: `threads = ${THREADS}` };
  const child = await startChild(options);
  if (child instanceof Problem) return child;
  const { url, apiKey } = child.service;
  return {
    pid: child.pid,
    robot: (folder, name) => [
      ...[process.execPath, join(import.meta.dir, "robot-child.ts")],
      ...[way, url, apiKey, folder, name],
    ],
    stop: () => child.stop(),
  };
}

/** A server of robots.py, with its robots. */
async function peer(form: "act" | "openpi", model: Model): Promise<Server | Problem> {
  const words = [pythonOf("robots"), ROBOTS];
  const bundle = model === "none" ? [] : [BUNDLE, String(THREADS)];
  const server = PeerProcess.start(`robots.py serve ${form}`, [...words, "serve", form, ...bundle]);
  const address = await server.line();
  if (address instanceof Problem) return address;
  const said = [JSON.stringify(stateRow()), SAMPLE_INSTRUCTION];
  return {
    pid: server.pid,
    robot: (folder) => [...words, "robot", form, address, folder, ...said],
    stop: () => server.stop(),
  };
}

/** The state in the order of the model's columns: six joints and the gripper of the left arm, then of the right one. */
function stateRow(): number[] {
  const { joint_position: joints, gripper_position: grippers } = SAMPLE_STATE;
  return [...joints.slice(0, 6), ...grippers.slice(0, 1), ...joints.slice(6), ...grippers.slice(1)];
}

async function withRobots(
  name: string,
  server: Server,
  drive: Drive,
  folders: readonly string[],
): Promise<Runner<Turn> | Problem> {
  const robots = Array.from({ length: drive.robots }, (_, index) => {
    const folder = folders[index % folders.length] ?? "";
    return PeerProcess.start(`a robot of ${name}`, server.robot(folder, `robot-${index}`));
  });
  const stop = async () => {
    for (const robot of robots) await robot.stop();
    await server.stop();
  };
  const ready = await Promise.all(robots.map((robot) => robot.line()));
  const problem = ready.find((line) => line instanceof Problem);
  if (problem !== undefined) {
    await stop();
    return problem;
  }
  return {
    async turn() {
      const alone = await driven(server, robots.slice(0, 1), drive.alone);
      if (alone instanceof Problem) return alone;
      const crowd = drive.crowd === 0 ? undefined : await driven(server, robots, drive.crowd);
      return crowd instanceof Problem ? crowd : { alone, crowd };
    },
    stop,
  };
}

const Times = Type.Array(Type.Number());

/** `count` observations of each of these robots, side by side; a robot waits for its rows before it sends again. */
async function driven(server: Server, robots: readonly PeerProcess[], count: number): Promise<Driven | Problem> {
  const before = await processorTime(server.pid);
  const beforeMs = performance.now();
  const answers = await Promise.all(robots.map((robot) => robot.ask(String(count))));
  const seconds = (performance.now() - beforeMs) / 1000;
  const { allMs } = since(before, await processorTime(server.pid));
  const ms: number[] = [];
  for (const answer of answers) {
    if (answer instanceof Problem) return answer;
    const times: unknown = JSON.parse(answer);
    if (!Value.Check(Times, times)) return new Problem("a robot printed something else than its times");
    ms.push(...times);
  }
  return { ms, seconds, processorMs: allMs };
}

/** Limits: tendon's figure over the peer's. */
const LIMITS: Readonly<Record<Model, { p50: number; crowdP99?: number; crowdPerSecondLeast?: number }>> = {
  none: { p50: 0.333, crowdP99: 0.25, crowdPerSecondLeast: 4 },
  bundle: { p50: 0.6 },
};
const TITLES: Readonly<Record<Model, string>> = { none: "rows that cost nothing", bundle: "the same bundle" };

const alone = (turns: readonly Turn[]): Driven[] => turns.map((turn) => turn.alone);
const crowd = (turns: readonly Turn[]): Driven[] => turns.flatMap((turn) => turn.crowd ?? []);
const msOf = (driven: readonly Driven[]): number[] => driven.flatMap(({ ms }) => [...ms]);
const total = (driven: readonly Driven[], of: (one: Driven) => number): number =>
  driven.reduce((sum, one) => sum + of(one), 0);

/** The table of all, and tendon's figures over those of the peer with the same way over the wire. */
export function robotFigures(
  rounds: Rounds<Turn>,
  { model, robots }: Drive,
): { readonly table: string; readonly figures: Figure[] } {
  const p50: Column<Turn> = { measure: "1 robot, p50", unit: "ms", of: (turns) => summary(msOf(alone(turns))).p50 };
  const crowdP99: Column<Turn> = {
    ...{ measure: `${robots} robots, p99`, unit: "ms" },
    of: (turns) => summary(msOf(crowd(turns))).p99,
  };
  const crowdPerSecond: Column<Turn> = {
    ...{ measure: `${robots} robots, requests a second`, unit: "1" },
    of: (turns) => msOf(crowd(turns)).length / total(crowd(turns), ({ seconds }) => seconds),
  };
  const columns: Column<Turn>[] = [
    p50,
    { measure: "1 robot, p99", unit: "ms", of: (turns) => summary(msOf(alone(turns))).p99 },
    {
      ...{ measure: "processor time of its process for a request", unit: "ms" },
      of: (turns) => total(alone(turns), ({ processorMs }) => processorMs) / msOf(alone(turns)).length,
    },
    ...(robots > 1 ? [crowdP99, crowdPerSecond] : []),
  ];
  const { names, figures, table } = shownOf(TITLES[model], rounds, columns);
  const { p50: limit, crowdP99: crowdLimit, crowdPerSecondLeast } = LIMITS[model];
  const ratios = PAIRS.filter(({ peer }) => names.includes(peer)).flatMap(({ own, peer }): Figure[] => {
    const over = ({ measure, of }: Column<Turn>, limits: Partial<Figure>) => ({
      ...{ measure: `${TITLES[model]}: ${own} over ${peer}, ${measure}`, value: ratio(rounds, [own, peer], of) },
      ...{ unit: "1", ...limits },
    });
    if (robots === 1) return [over(p50, { limit })];
    return [
      over(p50, { limit }),
      over(crowdP99, crowdLimit === undefined ? {} : { limit: crowdLimit }),
      over(crowdPerSecond, crowdPerSecondLeast === undefined ? {} : { least: crowdPerSecondLeast }),
    ];
  });
  return { table, figures: [...figures, ...ratios] };
}
