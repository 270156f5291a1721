/**
 * One random history: robots of two accounts send, repeat, change, cancel and abandon requests while the engine fails, commits
 * are refused, time passes and the process is killed. Same seed, same history.
 */
import type { Model } from "../../src/engine/engine.ts";
import { present } from "../../src/std/assert.ts";
import { RandomStream } from "../../src/std/random.ts";
import { checkEnd, checkReply } from "./check.ts";
import { flush, type World } from "./world.ts";

export interface Robot {
  readonly account: number;
  readonly model: number;
  /** undefined: its requests have no session. */
  sessionId: string | undefined;
  /** The step that it believes to be next. */
  step: number;
  episode: number;
}

/** A request and what became of it. */
export interface Sent {
  readonly index: number;
  readonly robot: Robot;
  readonly body: Record<string, unknown>;
  readonly account: number;
  readonly seed: number;
  readonly client: AbortController;
  /** Terminal replies. */
  readonly replies: Reply[];
  /** Its process was killed, or its client has left: no reply is owed. */
  excused: boolean;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly generationId: string | null;
  readonly step: string | null;
  readonly replayed: boolean;
}

/** What a history needs to know of its pictures. */
export interface Pictures {
  readonly good: string;
  readonly bad: string;
}

export class History {
  readonly sent: Sent[] = [];
  readonly trace: string[] = [];
  /** Whether a request had to wait for slots. */
  waited = false;
  private readonly random: RandomStream;
  private readonly robots: Robot[];

  constructor(
    readonly world: World,
    seed: string,
    private readonly pictures: Pictures,
    private readonly actions: number,
    private readonly kills: boolean,
    private readonly clean: Model,
  ) {
    this.random = new RandomStream(seed);
    const robot = (account: number, model: number, sessionId: string | undefined): Robot => ({
      account,
      model,
      sessionId,
      step: 0,
      episode: 0,
    });
    this.robots = [
      robot(0, 0, "one"),
      robot(0, 1, "one"),
      robot(1, 0, "one"),
      robot(1, 0, "two"),
      robot(0, 1, undefined),
    ];
  }

  /** Runs it to its end, when everybody is answered; throws where a promise is broken. */
  async run(): Promise<void> {
    for (let action = 0; action < this.actions; action += 1) {
      await this.act();
      await flush();
      this.waited ||= this.world.service.admission.waiting > 0;
    }
    await this.drain();
    await checkEnd(this, this.clean);
  }

  private async act(): Promise<void> {
    const { world } = this;
    const choice = this.below(100);
    if (choice < 16) return this.send(this.pick(this.robots));
    if (choice < 21) return this.again();
    if (choice < 23) return this.conflict();
    if (choice < 26) return this.abandon();
    if (choice < 28) {
      world.failStep = this.below(2);
      return this.note(`the next run fails before flow step ${world.failStep}`);
    }
    if (choice < 30) {
      world.refuseCommit = true;
      return this.note("the next commit is refused");
    }
    if (choice < 34) return this.advance(this.pick([100, 250, 2_000, 5_000, 11_000, 61_000]));
    if (choice < 35) return await this.end();
    if (choice < 36 && this.kills) return this.kill();
    if (world.gates.size === 0) return this.send(this.pick(this.robots));
    this.note(`open ${await world.gates.open(this.below(world.gates.size))}`);
  }

  private send(robot: Robot): void {
    const { cameras, frames } = this.manifest(robot);
    const right = cameras.length * (robot.step === 0 ? frames.first : frames.later);
    const images = this.below(25) === 0 ? right + 1 : right;
    const bad = this.below(25) === 0 ? this.below(images) : -1;
    const part = (index: number) => ({
      type: "image_url",
      image_url: { url: index === bad ? this.pictures.bad : this.pictures.good },
    });
    const content = [
      { type: "text", text: this.below(30) === 0 ? "another task" : "fold the towel" },
      ...Array.from({ length: images }, (_, index) => part(index)),
    ];
    const seed = this.sent.length + 1;
    this.post(robot, seed, {
      model: this.manifest(robot).id,
      messages: [{ role: "user", content }],
      robot_state: { joint_position: Array(12).fill(0.1), gripper_position: [0.25, 0.75] },
      seed,
      stream: this.below(3) === 0,
      ...(robot.sessionId === undefined ? {} : { session_id: robot.sessionId }),
      ...(this.below(3) > 0 ? { observation_id: `o${seed}` } : {}),
      ...(this.below(2) > 0 ? { expected_step: robot.step } : {}),
    });
  }

  /** The same request once more, byte for byte. */
  private again(): void {
    const earlier = this.sent.filter(({ body }) => body.observation_id !== undefined);
    if (earlier.length === 0) return;
    const { robot, seed, body } = this.pick(earlier);
    this.post(robot, seed, body);
  }

  /** An observation_id with other content. */
  private conflict(): void {
    const earlier = this.sent.filter(({ body }) => body.observation_id !== undefined);
    if (earlier.length === 0) return;
    const { robot, body } = this.pick(earlier);
    const seed = this.sent.length + 1;
    this.post(robot, seed, { ...body, seed });
  }

  private post(robot: Robot, seed: number, body: Record<string, unknown>): void {
    const sent: Sent = {
      index: this.sent.length,
      robot,
      body,
      account: robot.account,
      seed,
      client: new AbortController(),
      replies: [],
      excused: false,
    };
    this.sent.push(sent);
    const { session_id, observation_id, expected_step, stream } = body;
    this.note(
      `#${sent.index} send seed ${seed} ${JSON.stringify({ session_id, observation_id, expected_step, stream })}`,
    );
    const init = { method: "POST", body: JSON.stringify(body), signal: sent.client.signal };
    void this.world.send("/v1/chat/completions", robot.account, init).then(
      async (response) => {
        const text = await response.text();
        this.reply(sent, {
          status: response.status,
          text,
          generationId: response.headers.get("x-generation-id"),
          step: response.headers.get("x-session-step"),
          replayed: response.headers.get("idempotent-replayed") === "true",
        });
      },
      (error) => this.note(`#${sent.index} broke: ${(error as Error).message}`),
    );
  }

  private reply(sent: Sent, reply: Reply): void {
    const { code, step } = checkReply(this, sent, reply);
    this.note(`#${sent.index} ← ${code ?? `step ${step}`}${reply.replayed ? ", replayed" : ""}`);
    sent.replies.push(reply);
    const { robot } = sent;
    if (sent.body.session_id !== robot.sessionId || robot.sessionId === undefined) return;
    if (code === "session_expired") {
      robot.episode += 1;
      robot.sessionId = `${robot.sessionId.split(".")[0]}.${robot.episode}`;
      robot.step = 0;
    } else if (code === undefined && step !== undefined && !reply.replayed) robot.step = step + 1;
  }

  private abandon(): void {
    const open = this.sent.filter(({ replies, excused }) => replies.length === 0 && !excused);
    if (open.length === 0) return;
    const sent = this.pick(open);
    sent.excused = true;
    this.note(`#${sent.index} client leaves`);
    sent.client.abort();
  }

  private advance(ms: number): void {
    this.note(`${ms} ms pass`);
    this.world.clock.advance(ms);
    this.world.service.sessions.sweep();
  }

  private async end(): Promise<void> {
    const robot = this.pick(this.robots);
    if (robot.sessionId === undefined) return;
    this.note(`end session ${robot.sessionId} of account ${robot.account}`);
    const model = encodeURIComponent(this.manifest(robot).id);
    await this.world.send(`/v1/robot/sessions/${robot.sessionId}?model=${model}`, robot.account, { method: "DELETE" });
  }

  private kill(): void {
    this.note("kill and restart");
    for (const sent of this.sent) if (sent.replies.length === 0) sent.excused = true;
    this.world.start();
  }

  /** Opens every gate until nobody waits for anything. */
  private async drain(): Promise<void> {
    const { world } = this;
    const waits = () => this.sent.some(({ replies, excused }) => replies.length === 0 && !excused);
    for (let round = 0; world.gates.size > 0 || waits(); round += 1) {
      if (round > 10_000) throw new Error("somebody waits for ever");
      if (world.gates.size > 0) this.note(`open ${await world.gates.open(0)}`);
      await flush();
    }
  }

  private manifest(robot: Robot) {
    return present(this.world.models[robot.model], "a model").manifest;
  }

  private note(text: string): void {
    this.trace.push(text);
  }

  private below(bound: number): number {
    return this.random.word() % bound;
  }

  private pick<T>(items: readonly T[]): T {
    return present(items[this.below(items.length)], "an item");
  }
}
