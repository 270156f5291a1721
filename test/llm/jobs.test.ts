/** Background jobs whose provider was away, or whose service stops: they wait in the queue, and each ends in one answer. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import type { StoreFault } from "../sim/llm-store.ts";
import { flush } from "../sim/world.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { JOB, LlmStage, pass, type StageOptions } from "./stage.ts";
import { ANSWER, bodyOf, Two } from "./two.ts";

const OTHER = "llm-b-v4-flash:async";
const RETRY = { job_retry_seconds: 3_600 };

async function started(table: StageOptions["table"] = RETRY): Promise<{ stage: LlmStage; clock: FakeClock }> {
  const clock = new FakeClock();
  const stage = await LlmStage.start({ clock, table });
  stage.provider.otherwise = { kind: "answer" };
  return { stage, clock };
}

/** How the jobs are that were submitted, with how often each is there. */
function states({ store }: Pick<LlmStage, "store">): Record<string, number> {
  const rows = store.rows<{ state: string; status: string }>(
    "SELECT state, json_extract(object, '$.status') AS status FROM responses",
  );
  const counts: Record<string, number> = {};
  for (const { state, status } of rows) {
    const name = state === "done" ? status : state;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Lets what is on its way arrive, until the jobs are in these states. */
async function until(stage: LlmStage, wanted: Record<string, number>): Promise<void> {
  while (!Bun.deepEquals(states(stage), wanted)) await Bun.sleep(1);
}

async function submit(stage: LlmStage, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const accepted = await stage.respond({ model: JOB, input: `job ${n}` }, `k${n}`);
    if (!("object" in accepted)) throw new Error("it is accepted");
  }
}

describe("a provider that is away", () => {
  test("100 jobs and a provider that says 429 for 2 s end in 100 answers, each charged once", async () => {
    const { stage, clock } = await started();
    await using _ = stage;
    stage.provider.otherwise = { kind: "refuse", status: 429 };
    await submit(stage, 100);
    await until(stage, { queued: 100 });
    await pass(clock, 2_000, 500);
    stage.provider.otherwise = { kind: "answer" };
    while (states(stage).completed !== 100) {
      clock.advance(250);
      await Bun.sleep(1);
    }
    expect(await stage.money()).toEqual({ settled: 100n * (12n * 600n + 8n * 2200n), held: 0n });
    expect(stage.store.report().problem).toBeUndefined();
  }, 20_000);

  test.each([
    ["status 401", { kind: "refuse", status: 401 }],
    ["status 500", { kind: "refuse", status: 500 }],
    ["no answer", { kind: "raw", status: "none", chunks: [], last: "reset" }],
  ] as const)("%s: the job waits, is queued for its client, keeps its hold, and is answered", async (_name, script) => {
    const { stage, clock } = await started();
    await using _ = stage;
    stage.provider.play(script);
    await submit(stage, 1);
    await until(stage, { queued: 1 });
    const again = await stage.respond({ model: JOB, input: "job 0" }, "k0");
    expect("object" in again && JSON.parse(again.object).status).toBe("queued");
    expect((await stage.money()).held).toBeGreaterThan(0n);
    clock.advance(2 * LIMITS.llmJobPauseMs.first);
    await until(stage, { completed: 1 });
    expect(stage.provider.exchanges).toHaveLength(2);
  });

  test("nothing is sent before its Retry-After, whatever the wall clock does; then it is, without a look of the service", async () => {
    const { stage, clock } = await started();
    await using _ = stage;
    stage.provider.play({ kind: "refuse", status: 503, headers: { "retry-after": "70" } });
    await submit(stage, 1);
    await until(stage, { queued: 1 });
    clock.jump(86_400_000);
    await pass(clock, 69_900, 300);
    stage.service.llm.jobs.kick();
    await Bun.sleep(5);
    expect([states(stage), stage.provider.exchanges.length]).toEqual([{ queued: 1 }, 1]);
    await pass(clock, 100 + LIMITS.llmJobPauseMs.first);
    await until(stage, { completed: 1 });
  });

  test("the pause grows, and job_retry_seconds after its submission the job has failed and costs nothing", async () => {
    const { stage, clock } = await started({ job_retry_seconds: 60 });
    await using _ = stage;
    stage.provider.otherwise = { kind: "refuse", status: 503 };
    await submit(stage, 1);
    const at: number[] = [];
    while (states(stage).failed !== 1) {
      while (at.length < stage.provider.exchanges.length) at.push(clock.monotonicMs());
      clock.advance(100);
      await Bun.sleep(1);
    }
    expect(at.length).toBeGreaterThanOrEqual(4);
    expect(at.length).toBeLessThanOrEqual(6);
    expect(Math.max(...at)).toBeLessThanOrEqual(60_000);
    const [row] = stage.store.rows<{ object: string }>("SELECT object FROM responses");
    expect(JSON.parse(row?.object ?? "").error.code).toBe("upstream_unavailable");
    expect(await stage.money()).toEqual({ settled: 0n, held: 0n });
  });

  test("nodes that failed at the same moment do not come back at the same one", async () => {
    const pauses = [0, 1000].map(async (jumpMs) => {
      const clock = new FakeClock();
      clock.jump(jumpMs);
      await using stage = await LlmStage.start({ clock, table: RETRY });
      stage.provider.otherwise = { kind: "refuse", status: 503 };
      await submit(stage, 1);
      while (stage.store.rows("SELECT 1 FROM responses WHERE repeats = 1").length === 0) await Bun.sleep(1);
      return stage.store.rows<{ pause: number }>("SELECT due_ms - 1000 * submitted_at AS pause FROM responses")[0]
        ?.pause;
    });
    const [one, other] = await Promise.all(pauses);
    expect(one).not.toBe(other);
  });

  test.each([
    ["job_retry_seconds = 0", { kind: "refuse", status: 503 }, { job_retry_seconds: 0 }],
    ["a refused request", { kind: "refuse", status: 400 }, RETRY],
    ["an answer that was cut off", { kind: "cut", after: 2 }, RETRY],
  ] as const)("%s: the job has failed at once", async (_name, script, table) => {
    const { stage } = await started(table);
    await using _ = stage;
    stage.provider.play(script);
    await submit(stage, 1);
    await until(stage, { failed: 1 });
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test("one that hangs starves no other, of the same account and of others", async () => {
    const two = await Two.open();
    for (let n = 0; n < 2 * LIMITS.llmJobsRunningMax; n += 1) await two.post(two.first, JOB, `hangs-${n}`);
    await two.world.pass(LIMITS.llmJobsLookMs);
    const { first, second } = two;
    expect([first, second].map(({ service }) => service.llm.jobs.running).sort((a, b) => a - b)).toEqual([
      0,
      LIMITS.modelLlmJobsRunningMax,
    ]);
    for (const account of [0, 1]) {
      const body = JSON.stringify({ model: OTHER, input: `other ${account}` });
      const headers = { "content-type": "application/json" };
      await two.first.send("/v1/responses", account, { method: "POST", body, headers });
    }
    await two.world.pass(LIMITS.llmJobsLookMs);
    expect([two.calls("other 0").length, two.calls("other 1").length]).toEqual([1, 1]);
  });

  test.each(["lost", "late", "twice"] as const)(
    "a job whose way back to the queue is %s runs once at a time, and is answered once",
    async (fault) => {
      const two = await Two.open();
      const { world, first, second } = two;
      world.nextStep = () => ({ kind: "unavailable" });
      const job = bodyOf(await two.post(first, JOB, "job"));
      await flush();
      two.fault("jobPutBack", ...Array<StoreFault>(2).fill(fault));
      await two.answer(first);
      world.nextStep = () => ANSWER;
      for (let round = 0; round < 10; round += 1) {
        await world.pass(500);
        while (world.late.size > 0) await world.late.open(0);
        expect(two.calls("job").filter(({ outcome }) => outcome === "open").length).toBeLessThanOrEqual(1);
      }
      for (const node of [first, second]) await two.answer(node);
      expect(await two.get(second, job.id)).toMatchObject({ status: "completed" });
      expect(two.calls("job")).toHaveLength(2);
      await two.expectPaid(1);
    },
  );
});

test("SIGTERM puts running jobs back to the queue; the next start runs them, and each ends in one charged answer", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  second.kill();
  const jobs = [];
  for (const key of ["j1", "j2", "j3"]) jobs.push(bodyOf(await two.post(first, JOB, key)));
  await flush();
  expect(world.calls.map(({ outcome }) => outcome)).toEqual(["open", "open", "open"]);
  // One has said a part of its answer.
  world.nextStep = () => ({ kind: "piece" });
  await first.gates.open(0);
  await first.end();
  await flush();
  expect(states(world)).toEqual({ queued: 3 });
  const owners = world.store.rows<{ owner: string }>("SELECT owner FROM llm_owners").map(({ owner }) => owner);
  expect(owners).not.toContain(first.service.llm.deps.owner);
  first.kill();
  const next = world.start(0);
  world.nextStep = () => ANSWER;
  await flush();
  await two.answer(next);
  for (const { id } of jobs) expect(await two.get(next, id)).toMatchObject({ status: "completed" });
  expect(world.calls).toHaveLength(6);
  await two.expectPaid(3);
});

test("a job that waits is taken when it is due by the processes that start later, and not before", async () => {
  const two = await Two.open();
  const { world } = two;
  world.nextStep = () => ({ kind: "unavailable" });
  const { id } = bodyOf(await two.post(two.first, JOB, "job"));
  await flush();
  await two.answer(two.first);
  const [row] = world.store.rows<{ due_ms: bigint }>("SELECT due_ms FROM responses");
  for (const [index, node] of [two.first, two.second].entries()) {
    node.kill();
    world.start(index);
  }
  world.nextStep = () => ANSWER;
  while (two.calls("job").length === 1) await world.pass(100);
  expect(world.clock.seenMs()).toBeGreaterThanOrEqual(Number(row?.due_ms));
  for (const node of world.nodes) await two.answer(node);
  expect(await two.get(two.first, id)).toMatchObject({ status: "completed" });
  await two.expectPaid(1);
});
