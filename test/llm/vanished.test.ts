/** Two nodes on one store: what one of them ran when it vanished, fell silent or was not answered; clocks that jump end nothing. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import type { StoreFault } from "../sim/llm-store.ts";
import { flush } from "../sim/world.ts";
import { eventsOf, JOB, LIVE } from "./stage.ts";
import { begin, bodyOf, codeOf, Two } from "./two.ts";

const HOUR_MS = 3_600_000;
const MISSED = LIMITS.llmBeatMissedMs;

test("a node vanished: its live responses are terminal, its jobs failed, those that it had not taken run, and nothing is sent twice", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  begin(two.post(first, LIVE, "plain"));
  const streamed = two.post(first, LIVE, "stream", { stream: true });
  begin(streamed);
  const running = bodyOf(await two.post(first, JOB, "running"));
  await flush();
  two.fault("jobsTake", ...Array<StoreFault>(9).fill("refused"));
  const queued = bodyOf(await two.post(first, JOB, "queued"));
  await flush();
  expect(world.calls.map(({ mark }) => mark).sort()).toEqual(["plain", "running", "stream"]);
  first.kill();
  world.fault = () => undefined;
  // The job that nobody had taken is taken at the next look.
  await world.pass(LIMITS.llmJobsLookMs + 1);
  await two.answer(second);
  expect(await two.get(second, queued.id)).toMatchObject({ status: "completed", output_text: "Answer 3 to queued." });
  await world.pass(MISSED - 5_000);
  expect((await two.get(second, running.id)).status).toBe("in_progress");
  await world.pass(8_000);
  const failed = await two.get(second, running.id);
  expect(failed).toMatchObject({ status: "failed", error: { code: "server_error" } });
  const again = await two.post(second, JOB, "running");
  expect([again.replayed, bodyOf(again)]).toEqual([true, failed]);
  expect(
    await Promise.all([two.post(second, LIVE, "plain"), two.post(second, LIVE, "stream", { stream: true })]),
  ).toMatchObject([
    { status: 409, text: expect.stringContaining("idempotency_replay_terminal") },
    { status: 409, text: expect.stringContaining("idempotency_replay_terminal") },
  ]);
  const [row] = world.store.rows<{ id: string }>("SELECT id FROM responses WHERE key = 'stream'");
  expect(await two.get(second, row?.id ?? "")).toMatchObject({ status: "failed", error: { code: "server_error" } });
  for (const mark of ["plain", "stream", "running", "queued"]) expect(two.calls(mark)).toHaveLength(1);
  await two.expectPaid(1);
});

test("what a process ran is ended at once by the next one in its data folder, which knows that it has gone", async () => {
  const two = await Two.open();
  const { first, second } = two;
  begin(two.post(first, LIVE, "plain"));
  const job = bodyOf(await two.post(first, JOB, "job"));
  await flush();
  const { owner } = first.service.llm.deps;
  first.kill();
  await second.service.llm.owners.start(false, owner);
  expect(await two.get(second, job.id)).toMatchObject({ status: "failed", error: { code: "server_error" } });
  expect(codeOf(await two.post(second, LIVE, "plain"))).toBe("idempotency_replay_terminal");
  await two.expectPaid(0);
});

test("clocks that jump by weeks end nothing that runs, and nothing that waits", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  const plain = two.post(first, LIVE, "plain");
  const job = bodyOf(await two.post(first, JOB, "job"));
  await flush();
  for (const weeks of [3, -6, 9]) {
    world.jumpedMs += weeks * 168 * HOUR_MS;
    await world.pass(7_000);
  }
  expect(world.buried.size).toBe(0);
  expect((await two.get(second, job.id)).status).toBe("in_progress");
  await two.answer(first);
  expect(await plain).toMatchObject({ status: 200, text: expect.stringContaining("Answer 0 to plain.") });
  expect(await two.get(second, job.id)).toMatchObject({ status: "completed" });
  await two.expectPaid(2);
});

test("a node that fell silent and came back loses what others ended meanwhile: it is not charged, and told that its key is spent", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  const plain = two.post(first, LIVE, "plain");
  const job = bodyOf(await two.post(first, JOB, "job"));
  await flush();
  // The signs of life of both nodes are asked for in turn: the first one's are not done.
  let turn = 0;
  world.fault = (operation) => {
    if (operation !== "ownerBeat") return undefined;
    turn += 1;
    return turn % 2 === 1 ? "refused" : undefined;
  };
  await world.pass(MISSED + 3 * LIMITS.llmBeatMs);
  expect([...world.buried]).toEqual([first.service.llm.deps.owner]);
  world.fault = () => undefined;
  await two.answer(first);
  // The others have spent the key.
  expect(codeOf(await plain)).toBe("idempotency_replay_terminal");
  expect(await two.get(first, job.id)).toMatchObject({ status: "failed", error: { code: "server_error" } });
  expect(codeOf(await two.post(first, LIVE, "plain"))).toBe("idempotency_replay_terminal");
  await world.pass(MISSED);
  // It works on.
  const next = two.post(first, LIVE, "next");
  await flush();
  await two.answer(first);
  expect([(await next).status, second.killed]).toEqual([200, false]);
  await two.expectPaid(1);
});

test("jobs whose taking was not answered run all the same, once", async () => {
  const two = await Two.open();
  const { world, first } = two;
  two.fault("jobsTake", "lost", "late");
  const lost = bodyOf(await two.post(first, JOB, "lost"));
  await flush();
  expect(world.calls).toEqual([]);
  const late = bodyOf(await two.post(first, JOB, "late"));
  await flush();
  await world.late.open(0);
  await world.pass(3 * LIMITS.llmJobsLookMs);
  await two.answer(first);
  for (const { id } of [lost, late]) expect((await two.get(first, id)).status).toBe("completed");
  for (const mark of ["lost", "late"]) expect(two.calls(mark)).toHaveLength(1);
  await two.expectPaid(2);
});

test("a submission that the store did not answer: a live one is taken back and its key free, a job runs if it was accepted", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  for (const [fault, key] of [
    ["lost", "k1"],
    ["late", "k2"],
  ] as const) {
    two.fault("submit", fault);
    expect(codeOf(await two.post(first, LIVE, key))).toBe("billing_unavailable");
    await flush();
    while (world.late.size > 0) await world.late.open(0);
    const again = two.post(second, LIVE, key);
    await flush();
    await two.answer(second);
    expect([(await again).status, two.calls(key).length]).toEqual([200, 1]);
    two.fault("enqueue", fault);
    expect(codeOf(await two.post(first, JOB, `j${key}`))).toBe("submission_outcome_unknown");
    while (world.late.size > 0) await world.late.open(0);
    const accepted = await two.post(second, JOB, `j${key}`);
    expect([accepted.status, accepted.replayed]).toEqual([200, true]);
    await world.pass(LIMITS.llmJobsLookMs);
    for (const node of [first, second]) await two.answer(node);
    expect([(await two.get(first, bodyOf(accepted).id)).status, two.calls(`j${key}`).length]).toEqual(["completed", 1]);
  }
  await two.expectPaid(4);
});

test("a request with another body on its way makes no conflict of the key's own repeats", async () => {
  const two = await Two.open();
  const { first, second } = two;
  const own = two.post(first, LIVE, "k");
  await flush();
  await two.answer(first);
  two.fault("submit", "slow");
  const other = two.post(second, LIVE, "k", { temperature: 0.5 });
  await flush();
  const repeat = two.post(second, LIVE, "k");
  await flush();
  await two.answer(second);
  expect(codeOf(await other)).toBe("idempotency_conflict");
  expect(await repeat).toEqual({ ...(await own), replayed: true });
  // The first one with a key has it, and the other one is told so when that is known.
  two.fault("submit", "slow");
  const [winner, loser] = [two.post(first, LIVE, "l"), two.post(first, LIVE, "l", { temperature: 0.5 })];
  begin(loser);
  await flush();
  await first.gates.open(0);
  await flush();
  expect(codeOf(await loser)).toBe("idempotency_conflict");
  await two.answer(first);
  expect((await winner).status).toBe(200);
  await two.expectPaid(2);
});

test("who waits behind a response of another node gets its answer, as a stream as well", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  const own = two.post(first, LIVE, "k", { stream: true });
  await flush();
  const waiting = two.post(second, LIVE, "k", { stream: true });
  await world.pass(3_000);
  await two.answer(first);
  await world.pass(LIMITS.llmPollMs);
  const [told, again] = [await own, await waiting];
  expect([told.replayed, again.replayed, two.calls("k").length]).toEqual([false, true, 1]);
  expect(eventsOf(again.text).events.at(-1)?.response).toEqual(eventsOf(told.text).events.at(-1)?.response);
  const stuck = two.post(first, LIVE, "l");
  begin(stuck);
  await flush();
  const late = two.post(second, LIVE, "l");
  await world.pass(LIMITS.llmKeyWaitMs + 1_000);
  expect(codeOf(await late)).toBe("submission_outcome_unknown");
  await two.answer(first);
  expect((await stuck).status).toBe(200);
  await two.expectPaid(2);
});
