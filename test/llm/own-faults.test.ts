/** Bugs of our own, and services that do not get ready: nobody waits for ever, no money stays held, no job is spent. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { eventsOf, JOB, LIVE, LlmStage, pass } from "./stage.ts";

test("a bug while a response runs is 500 internal_error, gives the money back and spends the key", async () => {
  await using stage = await LlmStage.start();
  const provider = stage.service.llm.deps.providers.get(LIVE);
  if (!provider) throw new Error("there is a provider");
  const run = provider.answer.bind(provider);
  provider.answer = async (call) => {
    // The stream begins; then the bug.
    call.draft.add("output_text", "Hal");
    call.moved();
    throw new TypeError("a bug of ours");
  };
  const plain = await stage.post({}, { "idempotency-key": "plain" });
  expect([plain.status, await plain.json()]).toMatchObject([500, { error: { code: "internal_error" } }]);
  expect(plain.headers.get("x-should-retry")).toBe("false");
  const streamed = await stage.post({ stream: true }, { "idempotency-key": "streamed" });
  const { events, done } = eventsOf(await streamed.text());
  expect([streamed.status, events.at(-1)?.type, done]).toEqual([200, "response.failed", true]);
  provider.answer = run;
  for (const [key, stream] of [
    ["plain", false],
    ["streamed", true],
  ] as const) {
    const again = await stage.post(stream ? { stream } : {}, { "idempotency-key": key });
    expect([again.status, await again.json()]).toMatchObject([409, { error: { code: "idempotency_replay_terminal" } }]);
  }
  expect(await stage.money()).toEqual({ settled: 0n, held: 0n });
  expect(stage.service.llm.deps.running.size).toBe(0);
});

test("a service takes no job before it has started", async () => {
  const clock = new FakeClock();
  await using stage = await LlmStage.start({ clock, jobs: "not started" });
  const queued = await stage.respond({ model: JOB });
  if (!("object" in queued)) throw new Error("the job is accepted");
  await pass(clock, 3 * LIMITS.llmJobsLookMs, 500);
  stage.service.llm.jobs.kick();
  await pass(clock, 1_000);
  expect([stage.provider.exchanges.length, JSON.parse(queued.object).status]).toEqual([0, "queued"]);
  stage.service.llm.jobs.start();
  await stage.asked(1);
});

test("streams of jobs and of stored answers are bounded for each account; one that ends makes room", async () => {
  await using stage = await LlmStage.start({ clock: new FakeClock() });
  const first = await stage.respond({ model: JOB, stream: true });
  if (!("flow" in first)) throw new Error("a stream");
  const more = await Promise.all(
    Array.from({ length: LIMITS.accountLlmReadersMax - 1 }, () => stage.respond({ model: JOB, stream: true })),
  );
  expect(more.every((one) => "flow" in one)).toBe(true);
  expect(await stage.respond({ model: JOB, stream: true })).toMatchObject({
    code: "upstream_unavailable",
    retryAfterSeconds: 1,
  });
  await first.flow.close();
  expect("flow" in (await stage.respond({ model: JOB, stream: true }))).toBe(true);
});
