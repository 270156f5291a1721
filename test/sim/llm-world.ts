/** The nodes of one history on one store: real apps and records; the provider, the store's answers and time as the seed decides. */
import type { Elysia } from "elysia";
import { expireHolds } from "../../src/charge/charges.ts";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { LIMITS } from "../../src/limits.ts";
import { LLM_IDS } from "../../src/llm/models.ts";
import { build, type Service } from "../../src/service/build.ts";
import { assert, present } from "../../src/std/assert.ts";
import type { Clock } from "../../src/std/clock.ts";
import { type FakeStore, fakeStore } from "../account/fake-store.ts";
import { addAccount } from "../robot/stage.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { Gates, inBackground } from "./gates.ts";
import { GatedProvider, type ProviderCall, type Step } from "./llm-provider.ts";
import { faultyStore, type StoreFault } from "./llm-store.ts";
import { flush } from "./world.ts";

export const LLM_ACCOUNTS = ["acct_1", "acct_2"] as const;

/** The clock of a process, whose timers end with it; its wall time may jump. */
class NodeClock implements Clock {
  private readonly timers = new Set<() => void>();

  constructor(private readonly world: LlmWorld) {}

  get armed(): number {
    return this.timers.size;
  }

  unixMs(): number {
    return this.world.clock.unixMs() + this.world.jumpedMs;
  }

  monotonicMs(): number {
    return this.world.clock.monotonicMs();
  }

  after(ms: number, due: () => void): () => void {
    const stop = this.tracked(
      this.world.clock.after(ms, () => {
        this.timers.delete(stop);
        due();
      }),
    );
    return stop;
  }

  every(ms: number, due: () => void): () => void {
    return this.tracked(this.world.clock.every(ms, due));
  }

  forget(): void {
    for (const stop of [...this.timers]) stop();
  }

  private tracked(disarm: () => void): () => void {
    const stop = () => {
      this.timers.delete(stop);
      disarm();
    };
    this.timers.add(stop);
    return stop;
  }
}

/** Timers of the recurring work that a node does here. */
const UPKEEP_TIMERS = 3;

export class LlmNode {
  readonly clock: NodeClock;
  readonly gates = new Gates();
  readonly service: Service;
  killed = false;
  private readonly app: Pick<Elysia, "handle">;

  constructor(readonly world: LlmWorld) {
    const { store, late } = world;
    this.clock = new NodeClock(world);
    const { clock, gates } = this;
    const note = (event: string, facts: object = {}) => world.noted(event, facts);
    const script = { gates, next: () => world.nextStep(), called: (mark: string) => world.called(mark, this) };
    const providers = new Map(LLM_IDS.map((id) => [id, new GatedProvider(clock, script)]));
    const llm = faultyStore(store.llm, { gates, late, fault: (name) => world.fault(name) });
    const settings = { chunkMs: 10_000, signUpOpen: false, drills: new Drills(), providers };
    this.service = build(settings, { clock, log: { info: note, error: note }, store: { ...store, llm } });
    this.service.robot.catalog.known = true;
    this.app = publicApp(this.service.http, this.service.surfaces);
    const { owners, jobs } = this.service.llm;
    const { charges } = store;
    const seen = this.service.core.clock;
    // Nodes side by side see the same time pass, whatever their wall clocks show.
    seen.begin(Math.floor(world.clock.seenMs() / 1_000));
    inBackground(owners.start(false).then(() => jobs.start()));
    clock.every(LIMITS.llmBeatMs, () => inBackground(owners.beat()));
    clock.every(LIMITS.llmJobsLookMs, () => jobs.kick());
    clock.every(LIMITS.holdsExpireMs, () => inBackground(expireHolds(charges, seen, { info: note, error: note })));
  }

  async send(path: string, account: number, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.world.keys[account]}`, "content-type": "application/json" };
    return await this.app.handle(
      new Request(`http://localhost${path}`, { ...init, headers: { ...headers, ...init.headers } }),
    );
  }

  /** What it waits for never comes. */
  kill(): void {
    this.killed = true;
    this.gates.forget();
    this.clock.forget();
  }

  /** Ends the process as SIGTERM does, after the time for what runs is over. */
  async end(): Promise<void> {
    const { lifecycle } = this.service.core;
    lifecycle.drain().catch(() => {});
    lifecycle.cut();
    await flush();
    await this.service.llm.owners.stop();
  }

  /** Nothing is left of any response. */
  expectIdle(): void {
    const { running, places } = this.service.llm.deps;
    assert(running.size === 0 && places.size === 0, "no live response and no place is left");
    assert(this.service.llm.jobs.running === 0, "no job runs");
    assert(this.service.http.ingress.bytes === 0, "no body is left");
    assert(this.clock.armed === UPKEEP_TIMERS, "no timer is left");
  }
}

export class LlmWorld {
  readonly clock = new FakeClock();
  readonly store: FakeStore = fakeStore();
  /** What is on its way to the database. */
  readonly late = new Gates();
  readonly keys: string[] = [];
  readonly calls: ProviderCall[] = [];
  /** Bugs of ours, as they are logged. */
  readonly faults: string[] = [];
  /** Owners that another node took to be dead. */
  readonly buried = new Set<string>();
  /** How often a job went back to the queue. */
  putBack = 0;
  readonly nodes: LlmNode[] = [];
  /** How far the wall clock is off. */
  jumpedMs = 0;
  nextStep: () => Step = () => ({ kind: "piece" });
  fault: (operation: string) => StoreFault | undefined = () => undefined;
  /** Somebody calls the provider. */
  onCall: (mark: string) => void = () => {};

  static async open(nodes: number): Promise<LlmWorld> {
    const world = new LlmWorld();
    for (const id of LLM_ACCOUNTS) world.keys.push(await addAccount(world.store, id));
    for (let index = 0; index < nodes; index += 1) world.start(index);
    await flush();
    return world;
  }

  /** A new process in this place. */
  start(index: number): LlmNode {
    const node = new LlmNode(this);
    this.nodes[index] = node;
    return node;
  }

  node(index: number): LlmNode {
    return present(this.nodes[index], "a node");
  }

  /** All gates that may be opened. */
  get gates(): Gates[] {
    return [this.late, ...this.nodes.map(({ gates }) => gates)].filter(({ size }) => size > 0);
  }

  called(mark: string, caller: LlmNode): ProviderCall {
    this.onCall(mark);
    const call: ProviderCall = { number: this.calls.length, mark, caller, outcome: "open" };
    this.calls.push(call);
    return call;
  }

  noted(event: string, facts: object): void {
    if (/ fault$/.test(event)) this.faults.push(`${event} ${JSON.stringify(facts)}`);
    if (event === "job put back") this.putBack += 1;
    if (event === "owner ended" && "owner" in facts) this.buried.add(String(facts.owner));
  }

  /** Time passes as it does: between two signs of life others have their turn. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1_000) {
      this.clock.advance(Math.min(left, 1_000));
      await flush();
    }
  }
}
