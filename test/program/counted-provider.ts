/** A provider that counts its calls by the key in the request's text, and says something else in each. It outlives the service. */
import { RandomStream } from "../../src/std/random.ts";
import type { Exchange } from "../llm/scripted-provider.ts";
import { ScriptedProvider } from "../llm/scripted-provider.ts";

/** Milliseconds between two events, at most: a call lasts for some of them. */
const GAP_MS = 30;
const TOKENS = { input: 12, output: 8 };
/** What a response costs at the rates that a provider has by itself, nano-dollars. */
export const PRICE = 12n * 600n + 8n * 2_200n;

export class CountedProvider implements AsyncDisposable {
  readonly calls = new Map<string, number>();

  private constructor(private readonly scripted: ScriptedProvider) {
    scripted.otherwise = (exchange) => this.play(exchange);
  }

  static async start(): Promise<CountedProvider> {
    return new CountedProvider(await ScriptedProvider.start());
  }

  /** Tables of `tendon.toml` that lead to it. */
  get tables(): string {
    const table = `base_url = "${this.scripted.url}"\nprotocol = "chat"\nmodel = "counted"\n`;
    return ["llm-a-5.3:superfast", "llm-a-5.3:async"].map((id) => `[llm."${id}"]\n${table}`).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scripted[Symbol.asyncDispose]();
  }

  private play({ body }: Exchange) {
    const key = /key=([\w-]+);/.exec(JSON.stringify(body))?.[1] ?? "";
    const count = (this.calls.get(key) ?? 0) + 1;
    this.calls.set(key, count);
    const random = new RandomStream(`${key} ${count}`);
    const text = `Answer ${count} to ${key}: ${random.word()}.`;
    return { kind: "answer", text, gapMs: random.word() % GAP_MS, usage: TOKENS } as const;
  }
}
