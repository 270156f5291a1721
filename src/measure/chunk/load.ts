/**
 * Load over HTTP: robots that each wait for their chunk before they send the next observation. It runs in another process than the
 * service, so that the client's JSON and base64 work is never part of the server's time.
 */
import { createHash } from "node:crypto";
import { type ActionChunk, chunkOf } from "../../client/chunk.ts";
import { CHAT_ROUTE, isReference } from "../../client/description.ts";
import { post, type Service } from "../../client/http.ts";
import { requestBody } from "../../client/request.ts";
import { STATIONS } from "../../engine/engine.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../sample/observation.ts";
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
  /** SHA-256 over all action rows, by robot and step, warm-up included. */
  readonly actionsSha256: string;
  readonly reference: boolean;
}

export async function driveChunks(load: Load): Promise<ChunkTimes | Problem> {
  const robots = Array.from({ length: load.robots }, (_, index) => new Robot(load, index));
  const warm = await driveAll(robots, () => load.warmup, undefined);
  if (warm !== undefined) return warm;
  const ms: Times = { decode: [], queue: [], prefill: [], denoise: [], encode: [], rest: [], client: [] };
  const beforeMs = systemClock.monotonicMs();
  const share = (index: number): number =>
    Math.floor(load.chunks / load.robots) + (index < load.chunks % load.robots ? 1 : 0);
  const driven = await driveAll(robots, share, ms);
  if (driven !== undefined) return driven;
  const digest = createHash("sha256");
  for (const robot of robots) digest.update(robot.digest());
  return {
    ms,
    seconds: (systemClock.monotonicMs() - beforeMs) / 1000,
    actionsSha256: digest.digest("hex"),
    reference: robots.some((robot) => robot.reference),
  };
}

/** `count` observations of each robot, all robots side by side; the first problem. */
async function driveAll(
  robots: readonly Robot[],
  count: (index: number) => number,
  ms: Times | undefined,
): Promise<Problem | undefined> {
  const ends = await Promise.all(robots.map((robot, index) => robot.drive(count(index), ms)));
  return ends.find((end) => end !== undefined);
}

class Robot {
  reference = false;
  private readonly bodies: readonly string[];
  private readonly hash = createHash("sha256");
  private sent = 0;

  constructor(
    private readonly load: Load,
    private readonly index: number,
  ) {
    const sessionId = `${load.sessionPrefix}-${index}`;
    const request = { model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, state: SAMPLE_STATE, sessionId };
    this.bodies = load.scenes.map((frames) => JSON.stringify(requestBody({ ...request, frames })));
  }

  /** Sends `count` observations, one after the other; times go to `ms` if it is given. */
  async drive(count: number, ms: Times | undefined): Promise<Problem | undefined> {
    for (let chunk = 0; chunk < count; chunk++) {
      const body = this.nextBody();
      const beforeMs = systemClock.monotonicMs();
      const answer = await post(this.load.service, CHAT_ROUTE, body);
      const clientMs = systemClock.monotonicMs() - beforeMs;
      if (answer instanceof Problem) return answer;
      const read = chunkOf(answer.body);
      if (read === undefined)
        return new Problem("the service answered without an action chunk; is the model a robot's?");
      this.reference ||= isReference(answer.headers);
      this.hash.update(JSON.stringify(read.actions));
      this.sent += 1;
      if (ms !== undefined) record(ms, read, clientMs);
    }
    return undefined;
  }

  private nextBody(): string {
    const body = this.bodies[(this.sent + this.index) % this.bodies.length] ?? "";
    if (this.load.repeatable !== true) return body;
    return `{"observation_id":"${this.sent}","expected_step":${this.sent},${body.slice(1)}`;
  }

  digest(): string {
    return this.hash.copy().digest("hex");
  }
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
