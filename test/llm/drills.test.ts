/** The drills of `TENDON_FAULTS` at the language models: what the client sees, and what is charged. */
import { describe, expect, test } from "bun:test";
import { Drills, readDrills } from "../../src/drill.ts";
import { ask, expectLedger, MANNERS } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

const drills = (text: string): Drills => {
  const read = readDrills(text);
  if (!(read instanceof Drills)) throw new Error(read.message);
  return read;
};
const key = (text: string) => ({ "idempotency-key": text });

describe("by the beginning of the Idempotency-Key", () => {
  test("upstream_unavailable: 503, the provider is not asked, and the key is free", async () => {
    await using stage = await LlmStage.start({ drills: drills("upstream_unavailable:drill-") });
    for (const manner of ["live", "stream"] as const) {
      const told = await ask(stage, manner, {}, key(`drill-${manner}`));
      expect([told.status, told.code]).toEqual([503, "upstream_unavailable"]);
    }
    const job = await ask(stage, "job", {}, key("drill-job"));
    expect([job.status, job.response?.status, job.code]).toEqual([200, "failed", "upstream_unavailable"]);
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
    expect((await ask(stage, "live", {}, key("other"))).status).toBe(200);
    expect((await ask(stage, "live")).status).toBe(200);
  });

  test("one that strikes once: the retry with the same key is answered", async () => {
    await using stage = await LlmStage.start({ drills: drills("upstream_unavailable:k@0") });
    expect((await ask(stage, "live", {}, key("k"))).status).toBe(503);
    expect((await ask(stage, "live", {}, key("k"))).status).toBe(200);
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, "something");
  });

  test("upstream_rejected: 400, and the key is spent", async () => {
    await using stage = await LlmStage.start({ drills: drills("upstream_rejected:k@0") });
    const told = await ask(stage, "live", {}, key("k"));
    expect([told.status, told.code, told.headers.get("x-should-retry")]).toEqual([400, "upstream_rejected", "false"]);
    expect((await ask(stage, "live", {}, key("k"))).code).toBe("idempotency_replay_terminal");
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
  });

  test("upstream_cut: after the first delta the stream fails, a plain request is 502, nothing is charged", async () => {
    await using stage = await LlmStage.start({ drills: drills("upstream_cut:cut") });
    stage.provider.otherwise = { kind: "answer", gapMs: 5 };
    const { events, code, response } = await ask(stage, "stream", {}, key("cut-1"));
    const text = expectStack(events, "response.failed");
    expect([code, response?.status]).toEqual(["invalid_upstream_response", "failed"]);
    expect("Hello from the provider.".startsWith(text) && text !== "").toBe(true);
    const live = await ask(stage, "live", {}, key("cut-2"));
    expect([live.status, live.code]).toEqual([502, "invalid_upstream_response"]);
    await expectLedger(stage, 0n);
  });

  test("upstream_slow: the answer comes, later", async () => {
    await using stage = await LlmStage.start({ drills: drills("upstream_slow:slow") });
    const slow = ask(stage, "live", {}, key("slow"));
    const other = await ask(stage, "live", {}, key("other"));
    expect([other.status, stage.provider.exchanges.length]).toEqual([200, 1]);
    expect((await slow).status).toBe(200);
    expect(stage.provider.exchanges).toHaveLength(2);
  });

  test("job_lost: the job has failed, says that it is not begun again, and its key returns that", async () => {
    await using stage = await LlmStage.start({ drills: drills("job_lost:lost") });
    const told = await ask(stage, "job", {}, key("lost"));
    expect([told.status, told.response?.status, told.code]).toEqual([200, "failed", "server_error"]);
    expect(told.message).toContain("not begun again");
    expect((await ask(stage, "buffered", { stream: true }, key("lost-2"))).response?.status).toBe("failed");
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
    expect((await ask(stage, "live", {}, key("lost-live"))).status).toBe(200);
  });
});

describe("of the whole service", () => {
  test.each(["billing_unavailable", "metering_unavailable"])("%s strikes here too: nothing ran", async (name) => {
    await using stage = await LlmStage.start({ drills: drills(name) });
    for (const manner of MANNERS) {
      const told = await ask(stage, manner);
      expect([told.status, told.code]).toEqual([503, name]);
    }
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
  });

  test("auth_unavailable strikes here too", async () => {
    await using stage = await LlmStage.start({ drills: drills("auth_unavailable") });
    for (const model of [LIVE, JOB]) expect((await ask(stage, "live", { model })).code).toBe("auth_unavailable");
    expect((await stage.get("/v1/models")).status).toBe(503);
  });

  test("of robots strikes no response", async () => {
    await using stage = await LlmStage.start({ drills: drills("model_failure,slow_model,billing_unavailable:robot-") });
    expect((await ask(stage, "live", {}, key("robot-1"))).status).toBe(200);
  });
});
