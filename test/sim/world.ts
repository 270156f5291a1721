/** The service of one history: a real app, table, store and observations; engine outcomes, the steps of the store, look-ups and time as the seed decides. */
import type { Elysia } from "elysia";
import { keyPublicId } from "../../src/account/key.ts";
import { expireHolds } from "../../src/charge/charges.ts";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { LIMITS } from "../../src/limits.ts";
import { forgetChunks } from "../../src/robot/replay.ts";
import { Episode } from "../../src/robot/socket/episode.ts";
import { Outbox } from "../../src/robot/socket/outbox.ts";
import type { RobotStore } from "../../src/robot/store/robot.ts";
import { build, type Service } from "../../src/service/build.ts";
import { beginSeenTime, keepSeenTime } from "../../src/service/upkeep.ts";
import { assert, present } from "../../src/std/assert.ts";
import type { Clock } from "../../src/std/clock.ts";
import { Failure } from "../../src/std/failure.ts";
import { RandomStream } from "../../src/std/random.ts";
import { StoreDown } from "../../src/store/store.ts";
import type { KnownModel } from "../fake-engine.ts";
import { FakeWire } from "../robot/socket/fake-wire.ts";
import { addAccount } from "../robot/stage.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { GatedModel } from "./gated-model.ts";
import { Gates, inBackground } from "./gates.ts";
import { SimStore } from "./store.ts";

const ACCOUNTS = ["acct_1", "acct_2"] as const;

const RATES = { prompt: 1_000n, cachedPrompt: 100n, completion: 1_000_000n };

/** Early frames: room for two later observations of a model, so that robots miss it now and then. */
export const EARLY_FRAMES_MAX = 24;

/** One in this number of the store's steps waits for the history. */
const STEPS_PER_WAIT = 2;

/** A socket, from its server's side. */
export interface Connection {
  readonly wire: FakeWire;
  receive(message: string | Uint8Array): void;
  /** What the server is told when the connection is gone. */
  gone(): void;
}

export class World {
  readonly clock = new FakeClock();
  /** How far the wall clock has jumped; nothing else jumps with it. */
  jumpedMs = 0;
  readonly gates = new Gates();
  readonly keys: string[] = [];
  readonly faults: string[] = [];
  /** The next commit is refused. */
  refuseCommit = false;
  /** The next session that a socket opens is not recorded. */
  refuseOpen = false;
  /** The flow step at which the next inference fails. */
  failStep: number | undefined;
  /** The number of look-ups in the record of sessions and observations that wait for the history. */
  slowReads = 0;
  models: GatedModel[] = [];
  /** Those of processes that were killed. */
  readonly past: GatedModel[] = [];
  service!: Service;
  private app!: Pick<Elysia, "handle">;

  /** `models` makes the models of a process; called again when it is restarted. */
  static async open(models: () => readonly KnownModel[], seed: string): Promise<World> {
    const world = new World(models, await SimStore.open(), new RandomStream(`steps of ${seed}`));
    for (const id of ACCOUNTS) world.keys.push(await addAccount(world.store, id));
    world.store.beforeKeep = () => {
      const refused = world.refuseCommit;
      world.refuseCommit = false;
      return refused ? new StoreDown("refused by the history") : undefined;
    };
    await world.start();
    return world;
  }

  private constructor(
    private readonly makeModels: () => readonly KnownModel[],
    readonly store: SimStore,
    private readonly random: RandomStream,
  ) {}

  /** A new process on what is left of the store: what the old one waited for never comes. */
  async restart(power: boolean): Promise<void> {
    this.gates.forget();
    this.clock.forget();
    await this.store.restart(power);
    await this.start();
  }

  /** Some steps of the store wait for the history from now on; otherwise none does. */
  private gateSteps(wait: boolean): void {
    this.store.steps = {
      hold: (what, step) => {
        if (wait && this.random.word() % STEPS_PER_WAIT === 0) inBackground(this.gates.hold(what, async () => step()));
        else step();
      },
    };
  }

  /** What the service does again and again: old records are forgotten, holds of dead nodes given back. */
  async upkeep(): Promise<void> {
    const { clock, log } = this.service.core;
    await keepSeenTime(clock, this.store.base);
    await forgetChunks(this.store.robot, clock, log);
    await expireHolds(this.store.charges, clock, log);
  }

  /** Nothing of the store waits any more. */
  letThrough(): void {
    this.gateSteps(false);
  }

  private async start(): Promise<void> {
    this.letThrough();
    // `serve` does the same on a private store: it releases the holds of a process that is gone.
    await this.store.charges.holdsExpire({ before: Number.MAX_SAFE_INTEGER });
    this.gateSteps(true);
    const inner = this.clock;
    const clock: Clock = {
      unixMs: () => inner.unixMs() + this.jumpedMs,
      monotonicMs: () => inner.monotonicMs(),
      after: (ms, due) => inner.after(ms, due),
      every: (ms, due) => inner.every(ms, due),
    };
    const store = this.store.forProcess();
    const failStep = () => {
      const step = this.failStep;
      this.failStep = undefined;
      return step;
    };
    this.slowReads = 0;
    this.refuseOpen = false;
    this.past.push(...this.models);
    this.models = this.makeModels().map((model) => new GatedModel(model, this.gates, failStep));
    const note = (event: string, facts: object = {}) => {
      if (event === "request fault" || event === "socket fault") this.faults.push(JSON.stringify(facts));
    };
    const read = async <T>(work: () => Promise<T>): Promise<T> => {
      if (this.slowReads > 0) {
        this.slowReads -= 1;
        // Not the work itself: its own steps may wait as well.
        await this.gates.hold("look-up", async () => {});
      }
      return await work();
    };
    const records: Pick<RobotStore, "sessionLastAt" | "sessionOpen" | "observation"> = {
      sessionLastAt: (session) => read(() => store.robot.sessionLastAt(session)),
      sessionOpen: (session) =>
        read(async () => {
          const refused = this.refuseOpen;
          this.refuseOpen = false;
          return refused ? new StoreDown("refused by the history") : await store.robot.sessionOpen(session);
        }),
      observation: (id) => read(() => store.robot.observation(id)),
    };
    this.service = build(
      {
        chunkMs: 10_000,
        signUpOpen: false,
        drills: new Drills(),
        // Narrow, so that robots wait for each other.
        bounds: { admission: { ...LIMITS, chunksMax: 3, accountChunksMax: 2, earlyFramesMax: EARLY_FRAMES_MAX } },
      },
      { clock, log: { info: note, error: note }, store: { ...store, robot: { ...store.robot, ...records } } },
    );
    const { catalog } = this.service.robot;
    catalog.known = true;
    for (const model of this.models) {
      catalog.add(model.manifest, RATES, model.served);
    }
    this.app = publicApp(this.service.http, this.service.surfaces);
    // Before the first request, as `serve` does.
    this.letThrough();
    const untimed = await beginSeenTime(this.service.core.clock, this.store.base);
    assert(!(untimed instanceof StoreDown), "the time that the service has seen is read");
    await this.upkeep();
    this.gateSteps(true);
  }

  /** Models of all processes. */
  get everyModel(): GatedModel[] {
    return [...this.past, ...this.models];
  }

  /** A socket of an account, put together as `upgrade.ts` does. */
  connect(account: number): Connection {
    const { service } = this;
    const accountId = present(ACCOUNTS[account], "an account");
    const leave = service.socket.sockets.enter(accountId);
    assert(!(leave instanceof Failure), "there is room for a socket");
    const wire = new FakeWire();
    const key = present(this.keys[account], "its key");
    const keyId = present(keyPublicId(key), "a key's public id");
    const client = { requestId: "req_peer", accountId, keyId, authorization: `Bearer ${key}` };
    let forget = () => {};
    const episode = new Episode(service.socket, client, new Outbox(wire, service.core.clock), () => forget());
    forget = service.socket.sockets.add(episode);
    // Its client is there until the line is cut.
    wire.answer = () => episode.heard();
    const gone = () => {
      episode.dropped();
      leave();
    };
    return { wire, receive: (message) => episode.receive(message), gone };
  }

  async send(path: string, account: number, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.keys[account]}`, "content-type": "application/json" };
    return await this.app.handle(new Request(`http://localhost${path}`, { headers, ...init }));
  }
}

/** Lets everything run that waits for nothing but its turn. */
export async function flush(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((done) => setImmediate(done));
}
