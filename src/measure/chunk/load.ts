/**
 * Load over HTTP: robots that each wait for their chunk before they send the next observation. It runs in another process than the
 * service, so that the client's JSON and base64 work is never part of the server's time.
 */
import { type ActionChunk, chunkOf } from "../../client/chunk.ts";
import type { Service } from "../../client/http.ts";
import { STATIONS } from "../../engine/engine.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { Robots } from "../load/robots.ts";
import type { Sample } from "../sample/observation.ts";
import type { Scenes } from "../sample/scenes.ts";

interface Load {
  readonly service: Service;
  /** Robots at once, each with its session. */
  readonly robots: number;
  /** Chunks in the measurement, over all robots. */
  readonly chunks: number;
  /** Chunks of each robot before it. */
  readonly warmup: number;
  readonly scenes: Scenes;
  /** Beginning of the session ids; another one for each measurement against the same service. */
  readonly sessionPrefix: string;
  /** Every observation has its observation_id and expected_step, so that it may be repeated. */
  readonly repeatable?: boolean;
  /** Absent, that of the documents. */
  readonly sample?: Sample;
}

export const COLUMNS = [...STATIONS, "rest", "client"] as const;
export type ColumnName = (typeof COLUMNS)[number];
type Times = Readonly<Record<ColumnName, number[]>>;

export interface ChunkTimes {
  /**
   * Milliseconds of each chunk: the five stations as the service reports them; `client` from handing the ready request text to
   * HTTP until the reply's last byte; `rest` = client − stations: transport, HTTP, the key, the wait for the durable record, scheduling.
   */
  readonly ms: Readonly<Record<ColumnName, readonly number[]>>;
  readonly seconds: number;
  readonly reference: boolean;
}

export async function driveChunks(load: Load): Promise<ChunkTimes | Problem> {
  const robots = new Robots(load.service, load.scenes, load.sessionPrefix, load.repeatable, load.sample);
  const driveAll = async (share: (robot: number) => number, ms?: Times): Promise<Problem | undefined> => {
    const all = Array.from({ length: load.robots }, (_, robot) => drive(robots, robot, share(robot), ms));
    return (await Promise.all(all)).find((end) => end !== undefined);
  };
  const warm = await driveAll(() => load.warmup);
  if (warm !== undefined) return warm;
  const ms: Times = { decode: [], queue: [], prefill: [], denoise: [], encode: [], rest: [], client: [] };
  const beforeMs = systemClock.monotonicMs();
  const share = (robot: number): number =>
    Math.floor(load.chunks / load.robots) + (robot < load.chunks % load.robots ? 1 : 0);
  const driven = await driveAll(share, ms);
  const seconds = (systemClock.monotonicMs() - beforeMs) / 1000;
  return driven ?? { ms, seconds, reference: robots.reference };
}

/** Sends `count` observations, one after the other; times go to `ms` if it is given. */
async function drive(
  robots: Robots,
  robot: number,
  count: number,
  ms: Times | undefined,
): Promise<Problem | undefined> {
  for (let chunk = 0; chunk < count; chunk++) {
    const answer = await robots.ask(robot);
    if (answer instanceof Problem) return answer;
    const read = chunkOf(answer.body);
    if (read === undefined) return new Problem("the service answered without an action chunk; is the model a robot's?");
    if (ms !== undefined) record(ms, read, answer.ms);
  }
  return undefined;
}

function record(ms: Times, chunk: ActionChunk, clientMs: number): void {
  let stationsMs = 0;
  for (const station of STATIONS) {
    const value = chunk.timing_ms[station];
    stationsMs += value;
    ms[station].push(value);
  }
  ms.rest.push(clientMs - stationsMs);
  ms.client.push(clientMs);
}
