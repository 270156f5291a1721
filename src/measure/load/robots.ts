/**
 * Robots over HTTP for load: each has its session and sends observation after observation. What comes back is read whole, but
 * only judged, not kept: the client shares the machine with the service that it measures.
 */
import { CHAT_ROUTE, contentOf, isReference } from "../../client/chunk.ts";
import { ErrorReply, NoAnswer, post, type Service } from "../../client/http.ts";
import { requestBody } from "../../client/request.ts";
import { present } from "../../std/assert.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { SAMPLE, SAMPLE_INSTRUCTION } from "../sample/observation.ts";
import { framesOf, type Scenes } from "../sample/scenes.ts";

const WARM_AT_ONCE = 8;

/** Why a request brought no chunk. */
export interface Refusal {
  /** The code of the service's error, `no_answer`, or the status of a reply without a code. */
  readonly code: string;
  readonly problem: Problem;
}

export interface Sender {
  /** Sends the next observation of a robot, 0 and up; undefined when its chunk is read. One at a time for each robot. */
  send(robot: number): Promise<Refusal | undefined>;
}

export class Robots implements Sender {
  /** Some chunk came from random weights, or from no model. */
  reference = false;
  /** The requests of each scene without their session, a session's first and a later one. The frames are most of it, and the same for all robots. */
  private readonly tails: readonly { readonly first: string; readonly later: string }[];
  private readonly sent: number[] = [];

  constructor(
    private readonly service: Service,
    scenes: Scenes,
    /** Beginning of the session ids; another one for each measurement against the same service. */
    private readonly sessionPrefix: string,
    /** Every observation has its observation_id and expected_step, so that it may be repeated. */
    private readonly repeatable = false,
    { model, state, cameras, frames: { first, later } } = SAMPLE,
  ) {
    const request = { model, instruction: SAMPLE_INSTRUCTION, state };
    const tail = (frames: readonly Uint8Array[]) => JSON.stringify(requestBody({ ...request, frames })).slice(1);
    this.tails = scenes.map((scene) => {
      const opening = tail(framesOf(scene, cameras.length, first));
      return { first: opening, later: first === later ? opening : tail(framesOf(scene, cameras.length, later)) };
    });
  }

  async send(robot: number): Promise<Refusal | undefined> {
    const answer = await this.ask(robot);
    if (answer instanceof Problem) return { code: codeOf(answer), problem: answer };
    if (contentOf(answer.body) !== undefined) return undefined;
    return { code: "no_chunk", problem: new Problem("the service answered without an action chunk") };
  }

  /** The reply to a robot's next observation. `ms`: from handing the ready request text to HTTP until its last byte. */
  async ask(robot: number): Promise<{ readonly body: unknown; readonly ms: number } | Problem> {
    const step = this.sent[robot] ?? 0;
    this.sent[robot] = step + 1;
    const tails = present(this.tails[(step + robot) % this.tails.length], "at least one scene");
    const tail = step === 0 ? tails.first : tails.later;
    const fields = this.repeatable ? `"observation_id":"${step}","expected_step":${step},` : "";
    const text = `{"session_id":"${this.sessionPrefix}-${robot}",${fields}${tail}`;
    const beforeMs = systemClock.monotonicMs();
    const answer = await post(this.service, CHAT_ROUTE, text);
    const ms = systemClock.monotonicMs() - beforeMs;
    if (answer instanceof Problem) return answer;
    this.reference ||= isReference(answer.headers);
    return { body: answer.body, ms };
  }

  /**
   * The observations of each robot before the measurement: connections, sessions, caches and compilers warm up. A few robots at a time, so that
   * nothing is refused before the measurement.
   */
  async warmUp(robots: number, each: number): Promise<Problem | undefined> {
    let next = 0;
    let problem: Problem | undefined;
    const work = async (): Promise<void> => {
      while (next < robots && problem === undefined) {
        const robot = next;
        next += 1;
        for (let sent = 0; sent < each && problem === undefined; sent += 1)
          problem ??= (await this.send(robot))?.problem;
      }
    };
    await Promise.all(Array.from({ length: Math.min(robots, WARM_AT_ONCE) }, work));
    return problem;
  }
}

function codeOf(problem: Problem): string {
  if (problem instanceof ErrorReply) return problem.code ?? String(problem.status);
  return problem instanceof NoAnswer ? "no_answer" : "other";
}
