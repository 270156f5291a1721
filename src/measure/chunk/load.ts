/**
 * The load generator of `tendon bench`: robots that each wait for their chunk before they send the next observation.
 * It runs in another process than the service, so that the client's JSON and base64 work never stands in the server's time.
 */
import { createHash } from "node:crypto";
import { type ActionChunk, chunkOf } from "../../client/chunk.ts";
import { CHAT_ROUTE, isReference } from "../../client/description.ts";
import { post, type Service } from "../../client/http.ts";
import { requestBody } from "../../client/request.ts";
import { STATIONS } from "../../edge/robot/chunk.ts";
import { Problem } from "../../error/problem.ts";
import { systemClock } from "../../std/clock.ts";

export interface Load {
  readonly service: Service;
  readonly model: string;
  /** Robots at once, each in a session of its own. */
  readonly robots: number;
  /** Chunks in the measurement, over all robots. */
  readonly chunks: number;
  /** Chunks of each robot before it. */
  readonly warmup: number;
  /** Observations to take turns with: the frames of each in the model's camera order. */
  readonly scenes: readonly (readonly Uint8Array[])[];
  readonly instruction: string;
  readonly state: object;
  /** Beginning of the session ids; another one for each measurement against the same service. */
  readonly sessionPrefix: string;
  /** Every observation has its observation_id and expected_step, so that it may be repeated. */
  readonly repeatable?: boolean;
}

export const COLUMNS = [...STATIONS, "rest", "client"] as const;
export type ColumnName = (typeof COLUMNS)[number];

export interface Measured {
  /**
   * Milliseconds of each chunk: the five stations as the service reports them; `client` from handing the ready request text to
   * HTTP until the reply's last byte; `rest` = client − stations: transport, HTTP, JSON, base64, checks, scheduling.
   */
  readonly ms: Readonly<Record<ColumnName, readonly number[]>>;
  readonly seconds: number;
  /** SHA-256 over all action rows, by robot and step, warm-up included. */
  readonly actionsSha256: string;
  readonly reference: boolean;
}

export async function measure(load: Load): Promise<Measured | Problem> {
  const ms = Object.fromEntries(COLUMNS.map((name): [string, number[]] => [name, []])) as Record<ColumnName, number[]>;
  const robots = Array.from({ length: load.robots }, (_, index) => new Robot(load, index));
  const warm = await Promise.all(robots.map((robot) => robot.drive(load.warmup, undefined)));
  const before = systemClock.monotonicMs();
  const share = (index: number): number =>
    Math.floor(load.chunks / load.robots) + (index < load.chunks % load.robots ? 1 : 0);
  const driven =
    warm.find((end) => end instanceof Problem) === undefined
      ? await Promise.all(robots.map((robot, index) => robot.drive(share(index), ms)))
      : warm;
  const problem = driven.find((end) => end instanceof Problem);
  if (problem !== undefined) return problem;
  const digest = createHash("sha256");
  for (const robot of robots) digest.update(robot.digest());
  return {
    ms,
    seconds: (systemClock.monotonicMs() - before) / 1000,
    actionsSha256: digest.digest("hex"),
    reference: robots.some((robot) => robot.reference),
  };
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
    this.bodies = load.scenes.map((frames) => JSON.stringify(requestBody({ ...load, frames, sessionId })));
  }

  /** Sends `count` observations, one after the other; times go to `ms` if it is given. */
  async drive(count: number, ms: Record<ColumnName, number[]> | undefined): Promise<Problem | undefined> {
    for (let chunk = 0; chunk < count; chunk++) {
      const body = this.nextBody();
      const before = systemClock.monotonicMs();
      const answer = await post(this.load.service, CHAT_ROUTE, body);
      const clientMs = systemClock.monotonicMs() - before;
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

function record(ms: Record<ColumnName, number[]>, chunk: ActionChunk, clientMs: number): void {
  let stationsMs = 0;
  for (const station of STATIONS) {
    const value = chunk.timing_ms[station];
    stationsMs += value;
    ms[station].push(value);
  }
  ms.rest.push(clientMs - stationsMs);
  ms.client.push(clientMs);
}
