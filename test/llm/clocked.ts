/** A service whose clock a test moves, without its HTTP; its provider is real, and hangs unless it is told otherwise. */
import { Drills } from "../../src/drill.ts";
import { readRequest } from "../../src/llm/checks.ts";
import type { EventFlow } from "../../src/llm/output/flow.ts";
import { Provider } from "../../src/llm/provider/provider.ts";
import type { ResponseOutcome } from "../../src/llm/respond.ts";
import { respond } from "../../src/llm/respond.ts";
import { build, type Service } from "../../src/service/build.ts";
import { canonicalDigest } from "../../src/std/canonical.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Failure } from "../../src/std/failure.ts";
import { type FakeStore, fakeStore, funded } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { ScriptedProvider } from "./scripted-provider.ts";
import { JOB, LIVE, providerConfig } from "./stage.ts";

export class Clocked implements AsyncDisposable {
  readonly clock = new FakeClock();

  private constructor(
    readonly provider: ScriptedProvider,
    readonly store: FakeStore,
    private readonly providers: ReadonlyMap<typeof JOB | typeof LIVE, Provider>,
    build: (clock: FakeClock) => Service,
  ) {
    this.service = build(this.clock);
  }

  readonly service: Service;

  static async start(jobs: "started" | "not started" = "started"): Promise<Clocked> {
    const provider = await ScriptedProvider.start();
    provider.otherwise = { kind: "hang" };
    const store = fakeStore();
    await store.accounts.accountAdd(funded("acct_1", "a@example.org"));
    const config = providerConfig({ base_url: provider.url, protocol: "chat" });
    const one = new Provider(config, undefined, systemClock);
    const providers = new Map([[JOB, one] as const, [LIVE, one] as const]);
    const settings = { chunkMs: 10_000, signUpOpen: false, drills: new Drills(), providers };
    const log = { info: () => {}, error: () => {} };
    const clocked = new Clocked(provider, store, providers, (clock) => build(settings, { clock, store, log }));
    if (jobs === "started") clocked.service.llm.jobs.start();
    return clocked;
  }

  /** What a transport would ask. */
  async respond(body: object, key = "k"): Promise<ResponseOutcome> {
    const full = { input: "Hi", ...body };
    const request = readRequest(full, this.providers);
    if (request instanceof Failure) return request;
    const digest = canonicalDigest("response", full);
    return await respond(this.service.llm.deps, { request, digest, accountId: "acct_1", requestId: "req_1", key });
  }

  /** So many requests have reached the provider. */
  async asked(count: number): Promise<void> {
    while (this.provider.exchanges.length < count) await Bun.sleep(1);
  }

  /** In steps, after each of which whoever was woken goes on. */
  async pass(ms: number, stepMs = ms): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.clock.advance(stepMs);
      await Bun.sleep(0);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.service.core.lifecycle.cut();
    await this.provider[Symbol.asyncDispose]();
  }
}

/** All that a stream has to say, as text. */
export async function readAll(flow: EventFlow): Promise<string> {
  let text = "";
  for (let piece = await flow.pull(); piece; piece = await flow.pull()) text += new TextDecoder().decode(piece);
  await flow.close();
  return text;
}
