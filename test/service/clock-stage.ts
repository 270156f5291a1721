/** A service on a real store whose clock a test moves: processes that end and begin, wall clocks that jump, time that passes. */
import type { NewAccount } from "../../src/account/store/accounts.ts";
import { expireHolds } from "../../src/charge/charges.ts";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { Provider } from "../../src/llm/provider/provider.ts";
import { sweep } from "../../src/runs/sweep.ts";
import { build, type Service } from "../../src/service/build.ts";
import type { Store } from "../../src/service/domains.ts";
import { beginSeenTime, keepSeenTime, Upkeep } from "../../src/service/upkeep.ts";
import { systemClock } from "../../src/std/clock.ts";
import { funded } from "../account/fake-store.ts";
import { FakeEngine } from "../fake-engine.ts";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { JOB, LIVE, providerConfig } from "../llm/stage.ts";
import { manifest, statefulManifest } from "../robot/manifests.ts";
import { addKey } from "../robot/stage.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { type EngineName, type Place, place } from "../store/engines.ts";

/** The prices of a chunk's row and its prompt. */
const RATES = { prompt: 1_000n, cachedPrompt: 100n, completion: 1_000_000n };

export const DAY = 86_400_000;

/** What a wall clock does: days from where it is, farther than anything is kept, and back. */
const JUMPS = [3, -3, -500, 1_000, -500].map((days) => days * DAY);

/** When it does that: while the service runs, or before it starts, after it was stopped or killed. */
const MOMENTS = ["serving", "stopped", "killed"] as const;

export class ClockStage implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly engine = new FakeEngine();
  service!: Service;
  private upkeep!: Upkeep;
  private app!: ReturnType<typeof publicApp>;
  private readonly keys = new Map<string, string>();

  private constructor(
    readonly at: Place,
    readonly store: Store,
    readonly provider: ScriptedProvider,
    private readonly owned: boolean,
  ) {}

  /** With `beside`, the node shares the store of that one and has its own clock. */
  static async start(engine: EngineName, beside?: ClockStage): Promise<ClockStage> {
    const at = beside?.at ?? (await place(engine));
    const store = beside?.store ?? (await at.open());
    const provider = beside?.provider ?? (await ScriptedProvider.start());
    const stage = new ClockStage(at, store, provider, !beside);
    for (const [id, key] of beside?.keys ?? []) stage.keys.set(id, key);
    return stage;
  }

  /** A process begins, as `serve` does. */
  async begin(): Promise<void> {
    const { clock, store } = this;
    const config = providerConfig({ base_url: this.provider.url, protocol: "chat" });
    const one = new Provider(config, undefined, systemClock);
    const providers = new Map([[JOB, one] as const, [LIVE, one] as const]);
    const settings = { chunkMs: 10_000, signUpOpen: true, drills: new Drills(), providers };
    const log = { info: () => {}, error: () => {} };
    const service = build(settings, { clock, log, store });
    await beginSeenTime(service.core.clock, store.base);
    await expireHolds(store.charges, service.core.clock, log, store.exclusive ? "all" : "overdue");
    await service.llm.owners.start(store.exclusive);
    const { catalog } = service.robot;
    catalog.known = true;
    for (const facts of [manifest(), statefulManifest()]) catalog.add(facts, RATES, this.engine.model(facts));
    this.service = service;
    this.upkeep = new Upkeep(service, store, { usageDays: 400, responseDays: 30 });
    // Its timers would go off thousands of times while days pass: a test takes their turns itself.
    clock.forget();
    this.app = publicApp(service.http, service.surfaces);
    await this.upkeep.forget();
    service.llm.jobs.start();
  }

  /** `stopped`: in order; `killed`: what was not kept by then is lost. */
  async end(how: "stopped" | "killed"): Promise<void> {
    const { clock, lifecycle } = this.service.core;
    lifecycle.cut();
    if (how === "stopped") await keepSeenTime(clock, this.store.base);
    this.clock.forget();
  }

  /** All recurring work, once. */
  async turn(): Promise<void> {
    const { core, robot, runs } = this.service;
    await keepSeenTime(core.clock, this.store.base);
    robot.sessions.sweep();
    await expireHolds(this.store.charges, core.clock, core.log);
    await sweep(runs);
    await this.upkeep.forget();
  }

  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.turn();
  }

  /** Each jump at each moment, and `check` after each of them. */
  async jumping(check: (when: string) => Promise<void>, moments: readonly (typeof MOMENTS)[number][] = MOMENTS) {
    for (const moment of moments) {
      for (const ms of JUMPS) {
        if (moment !== "serving") await this.end(moment);
        this.clock.jump(ms);
        if (moment !== "serving") await this.begin();
        await this.turn();
        await check(`${moment} ${ms / DAY}`);
      }
    }
  }

  /** An account with a key. */
  async account(id: string, changes: Partial<NewAccount> = {}): Promise<string> {
    await this.store.accounts.accountAdd({ ...funded(id, `${id}@example.org`), ...changes });
    this.keys.set(id, await addKey(this.store, id));
    return id;
  }

  async send(account: string, path: string, init: RequestInit & { headers?: Record<string, string> } = {}) {
    const headers = { authorization: `Bearer ${this.keys.get(account)}`, "content-type": "application/json" };
    return await this.app.handle(
      new Request(`http://localhost${path}`, { ...init, headers: { ...headers, ...init.headers } }),
    );
  }

  async post(account: string, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return await this.send(account, path, { method: "POST", body: JSON.stringify(body), headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.service.core.lifecycle.cut();
    if (!this.owned) return;
    await this.provider[Symbol.asyncDispose]();
    await this.at[Symbol.asyncDispose]();
  }
}
