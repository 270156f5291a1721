/** Robots of tendon and of the peers: each its own process, with the client library that is usual there. */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { startChild } from "../../src/measure/child.ts";
import { processorTime, since } from "../../src/measure/process.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_STATE } from "../../src/measure/sample/observation.ts";
import { Problem } from "../../src/std/problem.ts";
import type { Contender, Runner } from "./in-turns.ts";
import { pythonOf } from "./installed.ts";
import { PeerProcess } from "./process.ts";

/** The bundle of the sample's model. */
export const BUNDLE = join(import.meta.dir, "../../dist/models/molmoact2-yam");
/** Of ONNX Runtime, here and there. */
export const THREADS = 1;

/** `none`: rows cost nothing. `bundle`: the reference bundle on the CPU. */
export type Model = "none" | "bundle";

export interface Drive {
  readonly model: Model;
  /** Robots at once, beside one robot alone. */
  readonly robots: number;
  /** Observations of one turn of the robot that is alone. */
  readonly alone: number;
  /** The same of each of the robots at once; 0: they are not driven. */
  readonly crowd: number;
}

export interface Driven {
  /** Of each observation, by the client's clock. */
  readonly ms: readonly number[];
  readonly seconds: number;
  /** Of all threads of the server's process. */
  readonly processorMs: number;
}

export interface Turn {
  readonly alone: Driven;
  readonly crowd: Driven | undefined;
}

/** A server that runs, and the command of a robot of it. */
interface Server {
  readonly pid: number;
  robot(folder: string, name: string): readonly string[];
  stop(): Promise<unknown>;
}

/** Of the pair that is compared: ours, and the peer with the same way over the wire. */
export const PAIRS = [
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

/** `act_server.py` with `act_robot.py`, or the same of openpi. */
async function peer(name: "act" | "openpi", model: Model): Promise<Server | Problem> {
  const python = pythonOf("robots");
  const file = (part: string): string => join(import.meta.dir, `${name}_${part}.py`);
  const bundle = model === "none" ? [] : [BUNDLE, String(THREADS)];
  const server = PeerProcess.start(`${name}_server.py`, [python, file("server"), ...bundle]);
  const address = await server.line();
  if (address instanceof Problem) return address;
  return {
    pid: server.pid,
    robot: (folder) => [python, file("robot"), address, folder, JSON.stringify(stateRow()), SAMPLE_INSTRUCTION],
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
