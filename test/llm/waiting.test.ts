/** Requests whose answer is not there yet, or cannot be kept: what the others of their key get, and what a shutdown leaves. */
import { describe, expect, test } from "bun:test";
import type { Store } from "../../src/service/domains.ts";
import { Failure } from "../../src/std/failure.ts";
import { StoreDown } from "../../src/store/store.ts";
import { type FakeStore, fakeStore } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { ask, toldBy } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { JOB, LIVE, LlmStage, pass } from "./stage.ts";

const KEY = { "idempotency-key": "k" };

test("who sends a key whose first request still runs waits up to 30 s, then is told to come again", async () => {
  const clock = new FakeClock();
  await using stage = await LlmStage.start({ clock });
  const first = stage.respond({ model: LIVE });
  await stage.asked(1);
  let told: unknown;
  const second = stage.respond({ model: LIVE }).then((outcome) => {
    told = outcome;
  });
  await pass(clock, 29_000, 1_000);
  expect(told).toBeUndefined();
  await pass(clock, 1_000);
  await second;
  if (!(told instanceof Failure)) throw new Error("it is a failure");
  expect([told.status, told.wireCode, told.retryAfterSeconds]).toEqual([409, "submission_outcome_unknown", 1]);
  // It may be repeated: clients retry a 409 by themselves unless they are told not to.
  expect(told.row.final).toBeUndefined();
  expect(stage.provider.exchanges).toHaveLength(1);
  stage.service.core.lifecycle.cut();
  expect(await first).toBeInstanceOf(Failure);
});

describe("when the store does not take the end", () => {
  /** `complete` fails so often; the money and the answer are kept by a later try. */
  function failing(times: number): FakeStore {
    const store = fakeStore();
    let left = times;
    const complete: Store["llm"]["complete"] = async (completion) => {
      left -= 1;
      return left >= 0 ? new StoreDown("switched off by the test") : await store.llm.complete(completion);
    };
    return { ...store, llm: { ...store.llm, complete } };
  }

  test("a plain request is 409 submission_outcome_unknown, and the same key gets the answer, which was charged once", async () => {
    await using stage = await LlmStage.start({ store: failing(2) });
    const told = await ask(stage, "live", {}, KEY);
    expect([told.status, told.code, told.headers.get("retry-after")]).toEqual([409, "submission_outcome_unknown", "1"]);
    const again = await ask(stage, "live", {}, KEY);
    expect([again.status, again.response?.output_text]).toEqual([200, "Hello from the provider."]);
    expect(stage.provider.exchanges).toHaveLength(1);
    expect((await stage.money()).held).toBe(0n);
    expect((await stage.money()).settled).toBeGreaterThan(0n);
  });

  test("a stream does not say completed, and the same key gets the answer", async () => {
    await using stage = await LlmStage.start({ store: failing(1) });
    const told = await ask(stage, "stream", {}, KEY);
    expect([told.response?.status, told.code]).toEqual(["failed", "submission_outcome_unknown"]);
    const again = await ask(stage, "stream", {}, KEY);
    expect(expectStack(again.events)).toBe("Hello from the provider.");
    expect(again.response?.id).toBe(told.response?.id ?? "");
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test("a job stays in progress until it does", async () => {
    await using stage = await LlmStage.start({ store: failing(1) });
    const { response } = await ask(stage, "job", {}, KEY);
    expect(response?.status).toBe("completed");
    expect(stage.provider.exchanges).toHaveLength(1);
  });
});

describe("at a shutdown", () => {
  test("a live request is told to come again, a stream that had begun fails, a job is put back; nothing is charged", async () => {
    await using stage = await LlmStage.start({ table: { job_retry_seconds: 3_600 } });
    stage.provider.otherwise = { kind: "hang_inside", after: 1 };
    const live = ask(stage, "live");
    const stream = ask(stage, "stream");
    const job = await toldBy(await stage.post({ model: JOB }, KEY));
    while (stage.provider.exchanges.length < 3) await Bun.sleep(1);
    await Bun.sleep(20);
    stage.service.core.lifecycle.cut();
    const [plain, events] = await Promise.all([live, stream]);
    expect([plain.status, plain.code]).toEqual([503, "upstream_unavailable"]);
    expect([events.response?.status, events.code]).toEqual(["failed", "upstream_unavailable"]);
    for (const { closed } of stage.provider.exchanges) await closed;
    while ((await toldBy(await stage.get(`/v1/responses/${job.response?.id}`))).response?.status !== "queued")
      await Bun.sleep(1);
    // The job's hold stays.
    const { held, settled } = await stage.money();
    expect([held > 0n, settled]).toEqual([true, 0n]);
  });
});
