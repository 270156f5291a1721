/**
 * One random history. Robots of two accounts send, repeat, change, cancel and abandon requests, and run episodes on sockets that
 * are cut anywhere. Meanwhile the engine fails, commits are refused, the store is slow or down, time passes, and the process is
 * killed or ends in order. Same seed, same history.
 */
import { LIMITS } from "../../src/limits.ts";
import { robotStateOf } from "../../src/robot/state.ts";
import { present } from "../../src/std/assert.ts";
import type { KnownModel } from "../fake-engine.ts";
import { checkEnd } from "./check.ts";
import { inBackground } from "./gates.ts";
import { Links } from "./links.ts";
import { Requests } from "./requests.ts";
import { Seeded } from "./trace.ts";
import { flush, type World } from "./world.ts";

export interface Robot {
  readonly account: number;
  readonly model: number;
  /** undefined: its requests have no session. */
  sessionId: string | undefined;
  /** The step that it believes to be next. */
  step: number;
  episode: number;
  /** It has only sockets. */
  readonly socketOnly: boolean;
}

/** The sender of an observation. */
export interface Origin {
  readonly account: number;
  /** Among those of its account and model; undefined: it has none. */
  readonly session: string | undefined;
  /** It has no observation_id, and was sent as a request that may be sent again. */
  readonly mayRepeat: boolean;
}

/** What a history needs to know of its pictures. */
export interface Pictures {
  readonly good: Uint8Array<ArrayBuffer>;
  readonly bad: Uint8Array<ArrayBuffer>;
}

interface Options {
  readonly pictures: Pictures;
  readonly actions: number;
  readonly kills: boolean;
  /** The wall clock jumps by days, at a start and while the service runs. */
  readonly jumps: boolean;
  readonly clean: KnownModel;
}

/** One in this number of events is a jump of the clock, in histories whose clocks jump. */
const JUMP_IN = 30;
const JUMP_HOURS = [-24 * 400, -24 * 3, -30, -1, 1, 30, 24 * 3, 24 * 400];
const HOUR_MS = 3_600_000;

/** The mark of an observation is a joint's position in these: exact in every number format. */
const MARKS_PER_UNIT = 1024;

export class History extends Seeded {
  /** Whether a request had to wait for slots. */
  waited = false;
  /** Senders by mark. */
  readonly origins = new Map<number, Origin>();
  readonly requests: Requests;
  readonly links: Links;
  readonly robots: Robot[];
  readonly pictures: Pictures;
  /** The store was down, so that money may be held until that expires. */
  private wasDown = false;

  constructor(
    readonly world: World,
    seed: string,
    private readonly options: Options,
  ) {
    super(seed);
    this.pictures = options.pictures;
    this.requests = new Requests(this);
    this.links = new Links(this);
    const robot = (account: number, model: number, sessionId: string | undefined, socketOnly = false): Robot => ({
      account,
      model,
      sessionId,
      step: 0,
      episode: 0,
      socketOnly,
    });
    this.robots = [
      robot(0, 0, "one"),
      robot(0, 1, "one"),
      robot(1, 0, "one"),
      robot(1, 0, "two"),
      robot(0, 1, undefined),
      robot(1, 1, "three", true),
      robot(0, 0, "four", true),
    ];
  }

  /** Runs it to its end, when everybody is answered; throws where a promise is broken. */
  async run(): Promise<void> {
    for (let action = 0; action < this.options.actions; action += 1) {
      await this.act();
      await this.settle();
    }
    await this.finish();
  }

  /** What waits for nothing but its turn has run, and robots have heard what there is. */
  async settle(): Promise<void> {
    await flush();
    this.links.hear();
    this.waited ||= this.world.service.robot.admission.waiting > 0;
  }

  /** Lets everybody through to the end, closes what is open, and looks at what is left. */
  async finish(): Promise<void> {
    const { world } = this;
    world.store.down = false;
    const inOrder = this.below(3) === 0;
    if (inOrder) {
      this.note("the service ends");
      world.service.core.lifecycle.drain().catch(() => {});
      world.service.socket.sockets.drain();
    }
    await this.drain();
    await this.links.endAll(inOrder);
    await this.drain();
    world.slowReads = 0;
    world.refuseOpen = false;
    world.clock.advance(LIMITS.socketCloseMs);
    world.letThrough();
    await this.drain();
    if (this.wasDown) await world.store.charges.holdsExpire({ before: Number.MAX_SAFE_INTEGER });
    await checkEnd(this, this.options.clean);
  }

  private async act(): Promise<void> {
    const { world } = this;
    if (world.store.down && this.below(6) === 0) return this.turnStore("up");
    // Asked only where clocks jump: the other histories stay what they are.
    if (this.options.jumps && this.below(JUMP_IN) === 0) return this.jump();
    const choice = this.below(100);
    if (choice < 9) return this.requests.send(this.pick(this.robots.filter(({ socketOnly }) => !socketOnly)));
    if (choice < 12) return this.requests.again();
    if (choice < 13) return this.requests.conflict();
    if (choice < 15) return this.requests.abandon();
    if (choice < 17) {
      world.failStep = this.below(2);
      return this.note(`the next run fails before flow step ${world.failStep}`);
    }
    if (choice < 18) return this.refuse();
    if (choice < 21) return this.advance(this.pick([100, 250, 2_000, 5_000, 11_000, 61_000]));
    if (choice < 23) return await this.end();
    if (choice < 24 && this.options.kills) return await this.kill();
    if (choice < 26) return this.slow();
    if (choice < 27) return this.turnStore("down");
    if (choice < 28) return this.copy();
    if (choice < 55 || world.gates.size === 0) return await this.links.act();
    this.note(`open ${await world.gates.open(this.below(world.gates.size))}`);
  }

  /** Another observation of a robot. */
  mark(origin: Origin): number {
    const mark = this.origins.size + 1;
    this.origins.set(mark, origin);
    return mark;
  }

  stateOf(mark: number, robot: Robot): object {
    const manifest = this.manifest(robot);
    return robotStateOf(
      manifest,
      manifest.state.columns.map((_, at) => (at === 0 ? mark / MARKS_PER_UNIT : 0.1)),
    );
  }

  markOf(state: Float32Array): number {
    return Math.round(present(state[0], "the value that has the mark") * MARKS_PER_UNIT);
  }

  /** Chunks that the session has committed, in all processes. */
  committed(model: number, account: number, session: string): number {
    const { id } = present(this.world.models[model], "a model").manifest;
    const models = this.world.everyModel.filter(({ manifest }) => manifest.id === id);
    const origins = models.flatMap((one) =>
      one.committed.map(({ observation }) => this.origins.get(this.markOf(observation.state))),
    );
    return origins.filter((origin) => origin?.account === account && origin.session === session).length;
  }

  /** The robot's session is over: it goes on with another one. */
  renew(robot: Robot, sessionId: unknown): void {
    if (robot.sessionId === undefined || robot.sessionId !== sessionId) return;
    robot.episode += 1;
    robot.sessionId = `${robot.sessionId.split(".")[0]}.${robot.episode}`;
    robot.step = 0;
  }

  manifest({ model }: Robot) {
    return present(this.world.models[model], "a model").manifest;
  }

  private advance(ms: number): void {
    this.note(`${ms} ms pass`);
    this.world.clock.advance(ms);
    inBackground(this.world.upkeep());
    this.world.service.robot.sessions.sweep();
  }

  private jump(): void {
    const hours = this.pick(JUMP_HOURS);
    this.note(`the clock jumps by ${hours} hours`);
    this.world.jumpedMs += hours * HOUR_MS;
    inBackground(this.world.upkeep());
  }

  private refuse(): void {
    const commit = this.below(2) === 0;
    this.note(`the next ${commit ? "commit" : "record of a session"} is refused`);
    if (commit) this.world.refuseCommit = true;
    else this.world.refuseOpen = true;
  }

  slow(): void {
    this.world.slowReads = 1 + this.below(3);
    this.note(`the next ${this.world.slowReads} look-ups take their time`);
  }

  private copy(): void {
    this.note("the log is copied into the database");
    this.world.store.copyLog();
  }

  private turnStore(way: "up" | "down"): void {
    this.note(`the store is ${way}`);
    this.world.store.down = way === "down";
    this.wasDown = true;
  }

  private async end(): Promise<void> {
    const robot = this.pick(this.robots);
    if (robot.sessionId === undefined) return;
    this.note(`end session ${robot.sessionId} of account ${robot.account}`);
    const model = encodeURIComponent(this.manifest(robot).id);
    await this.world.send(`/v1/robot/sessions/${robot.sessionId}?model=${model}`, robot.account, { method: "DELETE" });
  }

  private async kill(): Promise<void> {
    const power = this.below(2) === 0;
    this.note(power ? "the power is lost" : "kill and restart");
    this.requests.excuse();
    this.links.lose();
    if (this.options.jumps && this.below(2) === 0) this.jump();
    await this.world.restart(power);
  }

  /** Opens every gate until nobody waits for anything. */
  private async drain(): Promise<void> {
    const { world } = this;
    for (let round = 0; world.gates.size > 0 || this.requests.waits || this.links.waits; round += 1) {
      if (round > 1_000) throw new Error("somebody waits for ever");
      if (world.gates.size > 0) this.note(`open ${await world.gates.open(0)}`);
      await this.settle();
    }
    await this.settle();
  }
}
