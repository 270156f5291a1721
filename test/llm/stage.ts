/** A service with one account and a scripted provider behind its language models, reached over a real socket. */
import { newKey } from "../../src/account/key.ts";
import { readTable } from "../../src/config/check.ts";
import { type LlmConfig, LlmTable, llmConfig } from "../../src/config/llm.ts";
import { Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { type Listener, listen } from "../../src/http/listen.ts";
import { readRequest } from "../../src/llm/checks.ts";
import type { ResponseOutcome } from "../../src/llm/command.ts";
import { LLM_IDS, type LlmId } from "../../src/llm/models.ts";
import { Provider } from "../../src/llm/provider/provider.ts";
import { respond } from "../../src/llm/respond.ts";
import { build, type Service } from "../../src/service/build.ts";
import { canonicalDigest } from "../../src/std/canonical.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Failure } from "../../src/std/failure.ts";
import { Problem } from "../../src/std/problem.ts";
import { type FakeStore, fakeStore, funded } from "../account/fake-store.ts";
import type { FakeClock } from "../std/fake-clock.ts";
import { ScriptedProvider } from "./scripted-provider.ts";

export const LIVE = "llm-a-5.3:superfast";
export const JOB = "llm-a-5.3:async";
/** The provider's, which nobody may read. */
export const SECRET = "sk-provider-0123456789abcdef";

/** Unless a test says otherwise a job is sent once. */
const ONCE = { job_retry_seconds: 0 };

export interface StageOptions {
  readonly protocol?: "chat" | "responses";
  /** Keys of the provider's table. */
  readonly table?: Readonly<Record<string, unknown>>;
  readonly drills?: Drills;
  readonly store?: FakeStore;
  readonly accountId?: string;
  /** Ids without a provider. */
  readonly without?: readonly LlmId[];
  /** Time passes only as the test says, and the provider hangs unless it is told otherwise. */
  readonly clock?: FakeClock;
  readonly jobs?: "not started";
  readonly unpaidSeconds?: number;
}

export class LlmStage implements AsyncDisposable {
  private constructor(
    readonly provider: ScriptedProvider,
    readonly service: Service,
    readonly store: FakeStore,
    readonly key: string,
    readonly accountId: string,
    private readonly listener: Listener,
    readonly logged: string[],
  ) {}

  static async start(options: StageOptions = {}): Promise<LlmStage> {
    const { drills = new Drills(), accountId = "acct_1", without = [], store = fakeStore(), clock } = options;
    const provider = await ScriptedProvider.start();
    if (clock) provider.otherwise = { kind: "hang" };
    await store.accounts.accountAdd(funded(accountId, `${accountId}@example.org`));
    const { key, record } = newKey(0);
    await store.accounts.keyAdd({ ...record, accountId, name: "" });
    const logged: string[] = [];
    const note = (event: string, facts: object = {}) => logged.push(`${event} ${JSON.stringify(facts)}`);
    const ids = LLM_IDS.filter((id) => !without.includes(id));
    const config = providerConfig({
      base_url: provider.url,
      protocol: options.protocol ?? "chat",
      ...ONCE,
      ...options.table,
    });
    const providers = new Map(ids.map((id) => [id, new Provider(config, SECRET, systemClock)]));
    const { unpaidSeconds } = options;
    const unpaid = unpaidSeconds === undefined ? {} : { unpaidSeconds };
    const settings = { chunkMs: 10_000, signUpOpen: false, drills, providers, ...unpaid };
    const service = build(settings, { clock: clock ?? systemClock, store, log: { info: note, error: note } });
    service.robot.catalog.known = true;
    await service.llm.owners.start(true);
    if (options.jobs === undefined) service.llm.jobs.start();
    const listener = listen(publicApp(service.http, service.surfaces), { host: "127.0.0.1", port: 0 });
    if (listener instanceof Problem) throw new Error(listener.message);
    return new LlmStage(provider, service, store, key, accountId, listener, logged);
  }

  get url(): string {
    return this.listener.url;
  }

  /** `POST /v1/responses` of a body without a model: of the live one. */
  async post(body: object, headers: Record<string, string> = {}, init: RequestInit = {}): Promise<Response> {
    return await fetch(`${this.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: LIVE, input: "Say hello.", ...body }),
      ...init,
    });
  }

  async get(path: string): Promise<Response> {
    return await fetch(`${this.url}${path}`, { headers: { authorization: `Bearer ${this.key}` } });
  }

  /** What a transport asks, where its clock is the test's. */
  async respond(body: object, key = "k"): Promise<ResponseOutcome> {
    const full = { input: "Hi", ...body };
    const { deps } = this.service.llm;
    const request = readRequest(full, deps.providers);
    if (request instanceof Failure) return request;
    const digest = canonicalDigest("response", full);
    return await respond(deps, { request, digest, accountId: this.accountId, requestId: "req_1", key });
  }

  /** Waits until this number of requests has reached the provider. */
  async asked(count: number): Promise<void> {
    while (this.provider.exchanges.length < count) await Bun.sleep(1);
  }

  /** Nano-dollars of the account. */
  async money(): Promise<{ readonly settled: bigint; readonly held: bigint }> {
    const found = await this.store.accounts.accountById(this.accountId);
    if (!found || !("settled" in found)) throw new Error("the account is there");
    return { settled: found.settled, held: found.held };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.service.core.lifecycle.cut();
    await this.listener.stop();
    await this.provider[Symbol.asyncDispose]();
  }
}

/** Passes time in steps, after each of which goes on what was woken. */
export async function pass(clock: FakeClock, ms: number, stepMs = ms): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await Bun.sleep(0);
  }
}

export function providerConfig(table: Readonly<Record<string, unknown>>): LlmConfig {
  const read = readTable(LlmTable, { model: "scripted", ...table }, "the test");
  if (read instanceof Problem) throw new Error(read.message);
  return llmConfig(read);
}

/** An event as it came. */
export interface Came {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** The events of a stream, and whether it ended with `[DONE]`. */
export function eventsOf(text: string): { events: Came[]; done: boolean; comments: number } {
  const events: Came[] = [];
  let done = false;
  let comments = 0;
  for (const block of text.split("\n\n").filter((one) => one !== "")) {
    const [first = "", second] = block.split("\n");
    if (first.startsWith(":")) comments += 1;
    else if (first === "data: [DONE]") done = true;
    else {
      const event = JSON.parse((second ?? "").slice("data: ".length)) as Came;
      if (first !== `event: ${event.type}`) throw new Error(`the event line is "${first}", the type "${event.type}"`);
      if (done) throw new Error("an event after [DONE]");
      events.push(event);
    }
  }
  return { events, done, comments };
}
