/** The store is away, for all nodes or for one: nobody who lives is taken to have ended. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { flush } from "../sim/world.ts";
import { JOB, LIVE } from "./stage.ts";
import { begin, bodyOf, Two } from "./two.ts";

const BEAT = LIMITS.llmBeatMs;

/** Two nodes whose beats are out of phase, each with a live response and a job. */
async function outOfPhase() {
  const two = await Two.open();
  const { world } = two;
  two.second.kill();
  // The second one that was opened has never run anything.
  await world.pass(LIMITS.llmBeatMissedMs + 2 * BEAT);
  world.buried.clear();
  world.start(1);
  await world.pass(2 * BEAT);
  const nodes = [two.first, two.second];
  const live = nodes.map((node, n) => two.post(node, LIVE, `live-${n}`));
  const jobs = await Promise.all(nodes.map((node, n) => two.post(node, JOB, `job-${n}`)));
  await world.pass(2 * BEAT);
  return {
    two,
    world,
    expectAllAnswered: async () => {
      expect([...world.buried]).toEqual([]);
      for (const node of nodes) await two.answer(node);
      expect((await Promise.all(live)).map(({ status }) => status)).toEqual([200, 200]);
      for (const job of jobs) expect(await two.get(two.first, bodyOf(job).id)).toMatchObject({ status: "completed" });
      await two.expectPaid(4);
    },
  };
}

test.each([17, 21])("an outage of the store of %d s, for both nodes, ends nothing of either", async (seconds) => {
  const { world, expectAllAnswered } = await outOfPhase();
  for (const offMs of [0, 300, 1_000]) {
    await world.pass(offMs);
    world.store.down = true;
    await world.pass(seconds * 1_000);
    world.store.down = false;
    await world.pass(2 * LIMITS.llmBeatMissedMs);
  }
  await expectAllAnswered();
});

test("a store that can be read and takes no sign of life for 21 s ends nothing", async () => {
  const { world, expectAllAnswered } = await outOfPhase();
  world.fault = (name) => (name === "ownerBeat" ? "refused" : undefined);
  await world.pass(21_000);
  world.fault = () => undefined;
  await world.pass(2 * LIMITS.llmBeatMissedMs);
  await expectAllAnswered();
});

test("a process that stood still for 21 s while the others could not write takes none of them to have ended", async () => {
  const { world, two, expectAllAnswered } = await outOfPhase();
  const { owners, deps } = two.second.service.llm;
  const { beat } = owners;
  // Nothing of it runs: no beat, and no look.
  owners.beat = async () => {};
  const first = two.first.service.llm.deps.owner;
  world.fault = (name) => (name === "ownerBeat" ? "refused" : undefined);
  await world.pass(21_000);
  world.fault = () => undefined;
  owners.beat = beat;
  // It is the first one to look.
  await owners.beat();
  expect([world.buried.has(first), world.buried.has(deps.owner)]).toEqual([false, false]);
  await world.pass(2 * LIMITS.llmBeatMissedMs);
  await expectAllAnswered();
});

test("a node that has ended is found after an outage as before it", async () => {
  const { world, two } = await outOfPhase();
  const { owner } = two.first.service.llm.deps;
  two.first.kill();
  world.store.down = true;
  await world.pass(17_000);
  world.store.down = false;
  await world.pass(LIMITS.llmBeatMissedMs - BEAT);
  expect([...world.buried]).toEqual([]);
  await world.pass(3 * BEAT);
  expect([...world.buried]).toEqual([owner]);
  begin(two.answer(two.second));
  await flush();
});
