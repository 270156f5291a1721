/** Tokens and money: what is held before the provider is called, and what its usage costs, however wrong it is. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, MANNERS, PROTOCOLS } from "./asking.ts";
import type { Answer } from "./script.ts";
import { LIVE, LlmStage } from "./stage.ts";

/** Nano-dollars per token, of the default table. */
const RATES = { input: 600n, cached: 110n, output: 2200n };
const MARGIN = 16;
const HELLO = "Hello from the provider.";

const wire = (protocol: string, input: unknown, output: unknown, cached?: unknown): NonNullable<Answer["usage"]> => ({
  wire:
    protocol === "chat"
      ? { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: { cached_tokens: cached } }
      : { input_tokens: input, output_tokens: output, input_tokens_details: { cached_tokens: cached } },
});

describe.each(PROTOCOLS)("%s", (protocol) => {
  test.each(MANNERS)(
    "%s: cached, reasoning and all tokens are told, and charged once at their rates",
    async (manner) => {
      await using stage = await LlmStage.start({ protocol });
      stage.provider.play({ kind: "answer", usage: { input: 100, cached: 40, output: 30, reasoning: 20 } });
      const { response } = await ask(stage, manner, { input: "x".repeat(200) });
      expect(response?.usage).toEqual({
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 40, cache_write_tokens: 0 },
        output_tokens: 30,
        output_tokens_details: { reasoning_tokens: 20 },
        total_tokens: 130,
      });
      await expectLedger(stage, 60n * RATES.input + 40n * RATES.cached + 30n * RATES.output);
    },
  );

  const WRONG: Readonly<Record<string, NonNullable<Answer["usage"]>>> = {
    none: "none",
    "a null": { wire: null },
    "a text": { wire: "12" },
    "a negative number": wire(protocol, -1, 8),
    "a negative output": wire(protocol, 12, -8),
    "a fraction": wire(protocol, 12.5, 8),
    texts: wire(protocol, "12", "8"),
    "a number beyond all bounds": wire(protocol, 1e300, 8),
    "a wrong number of cached tokens": wire(protocol, 12, 8, -4),
    "half of it": wire(protocol, 12, undefined),
  };

  test.each(Object.entries(WRONG))(
    "%s as usage: the service's own estimate is charged, and marked so",
    async (_, usage) => {
      await using stage = await LlmStage.start({ protocol });
      stage.provider.otherwise = { kind: "answer", usage };
      const { response } = await ask(stage, "live", { input: "x".repeat(80) });
      // A token for four bytes of what the hold assumes, and of what came.
      const input = Math.ceil((80 + 2 * MARGIN) / 4);
      const output = HELLO.length / 4;
      expect(response?.usage).toMatchObject({ input_tokens: input, output_tokens: output });
      await expectLedger(stage, BigInt(input) * RATES.input + BigInt(output) * RATES.output);
      expect(await metric(stage, "estimated")).toBe(1);
    },
  );

  test("an explicit 0 is a number: it costs nothing, and is no estimate", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", usage: { input: 0, output: 0 } });
    expect((await ask(stage, "live")).response?.usage).toMatchObject({ total_tokens: 0 });
    await expectLedger(stage, 0n);
    expect(await metric(stage, "estimated")).toBe(0);
  });

  const NAMES: readonly (readonly [string, object, number])[] = [
    ["prompt_tokens_details.cached_tokens", { prompt_tokens_details: { cached_tokens: 4 }, cached_tokens: 9 }, 4],
    ["an explicit 0 there", { prompt_tokens_details: { cached_tokens: 0 }, prompt_cache_hit_tokens: 9 }, 0],
    ["prompt_cache_hit_tokens", { prompt_tokens_details: {}, prompt_cache_hit_tokens: 5, cached_tokens: 9 }, 5],
    ["cached_tokens beside the others", { prompt_tokens_details: null, cached_tokens: 6 }, 6],
    ["none of these", { prompt_cache_miss_tokens: 3 }, 0],
  ];

  test.each(NAMES)("the cached tokens of a provider are those of %s", async (_, names, cached) => {
    await using stage = await LlmStage.start({ protocol });
    const counts =
      protocol === "chat" ? { prompt_tokens: 10, completion_tokens: 1 } : { input_tokens: 10, output_tokens: 1 };
    stage.provider.play({ kind: "answer", usage: { wire: { ...counts, ...names } } });
    const { usage } = (await ask(stage, "live")).response ?? {};
    expect(usage).toMatchObject({ input_tokens: 10, input_tokens_details: { cached_tokens: cached } });
    await expectLedger(stage, BigInt(10 - cached) * RATES.input + BigInt(cached) * RATES.cached + RATES.output);
  });

  test("an estimate counts the bytes of the input and of the output, arguments and thoughts included", async () => {
    await using stage = await LlmStage.start({ protocol });
    const said = { text: "こんにちは", reasoning: "é".repeat(6), calls: [{ name: "add", arguments: '{"a":"é"}' }] };
    stage.provider.play({ kind: "answer", ...said, usage: "none" });
    const { response } = await ask(stage, "live", { input: "é".repeat(40) });
    const input = (80 + 2 * MARGIN) / 4;
    const output = Math.ceil((15 + 12 + 10) / 4);
    expect(response?.usage).toMatchObject({ input_tokens: input, output_tokens: output });
    await expectLedger(stage, BigInt(input) * RATES.input + BigInt(output) * RATES.output);
  });

  test("more cached tokens than input count as all of it", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", usage: { input: 10, cached: 99, output: 1, reasoning: 5 } });
    const { usage } = (await ask(stage, "live")).response ?? {};
    expect([usage?.input_tokens_details.cached_tokens, usage?.output_tokens_details.reasoning_tokens]).toEqual([10, 1]);
    await expectLedger(stage, 10n * RATES.cached + RATES.output);
  });

  test.each(MANNERS)("%s: usage above the hold costs the hold, and is counted", async (manner) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", usage: { input: 1_000_000, output: 1_000_000 } });
    const { response } = await ask(stage, manner, { input: "four", max_output_tokens: 10 });
    expect(response?.usage).toMatchObject({ input_tokens: 1_000_000, output_tokens: 1_000_000 });
    await expectLedger(stage, BigInt(4 + 2 * MARGIN) * RATES.input + 10n * RATES.output);
    expect(await metric(stage, "clamped")).toBe(1);
  });
});

/** All series of a counter together. */
async function metric(stage: LlmStage, name: "estimated" | "clamped"): Promise<number> {
  const full = name === "estimated" ? "tendon_llm_estimated_total" : "tendon_charges_clamped_total";
  const values = [...(await stage.service.core.metrics.text()).matchAll(new RegExp(`^${full}\\{.*\\} (\\d+)$`, "gm"))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

describe("the hold", () => {
  const NOTHING = { input: "", max_output_tokens: undefined };
  const image = `data:image/png;base64,${"A".repeat(4000)}`;
  const tool = { type: "function", name: "add", description: "Adds.", parameters: { type: "object" }, strict: true };
  const format = { type: "json_schema", name: "n", schema: { type: "object" } };
  const CASES: readonly (readonly [string, object, number, outputTokens?: number])[] = [
    [`${LIVE} without max_output_tokens`, NOTHING, 2 * MARGIN, 8192],
    ["llm-b-v4-flash:superfast without it", { ...NOTHING, model: "llm-b-v4-flash:superfast" }, 2 * MARGIN, 4096],
    ["llm-c-k3:superfast without it", { ...NOTHING, model: "llm-c-k3:superfast" }, 2 * MARGIN, 4096],
    [
      "bytes of the input, a margin per message and one for the instructions",
      { input: "é".repeat(10) },
      20 + 2 * MARGIN,
    ],
    ["instructions count by their bytes", { instructions: "abc", input: "x" }, 4 + 2 * MARGIN],
    [
      "each message has its margin",
      {
        input: [
          { role: "user", content: "a" },
          { role: "user", content: "b" },
        ],
      },
      2 + 3 * MARGIN,
    ],
    [
      "an image costs its constant, not its bytes",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: image }] }] },
      2048 + 2 * MARGIN,
    ],
    [
      "an image's address counts by its bytes too",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "https://example.org/a.png" }] }] },
      2048 + 25 + 2 * MARGIN,
    ],
    ["tools count by their bytes", { input: "", tools: [tool] }, JSON.stringify([tool]).length + 2 * MARGIN],
    [
      "a schema counts by its bytes",
      { input: "", text: { format } },
      JSON.stringify({ format: { ...format, description: null, strict: null }, verbosity: null }).length + 2 * MARGIN,
    ],
  ];

  test.each(CASES)("%s", async (_, body, inputTokens, outputTokens = 7) => {
    await using stage = await LlmStage.start({ table: { image_urls: true } });
    stage.provider.play({ kind: "hang_inside", after: 1 });
    const left = new AbortController();
    const answer = await stage.post({ stream: true, max_output_tokens: 7, ...body }, {}, { signal: left.signal });
    expect(answer.status).toBe(200);
    expect((await stage.money()).held).toBe(BigInt(inputTokens) * RATES.input + BigInt(outputTokens) * RATES.output);
    expect(stage.provider.exchanges[0]?.body?.max_tokens).toBe(outputTokens);
    left.abort();
  });
});
