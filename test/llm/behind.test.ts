/** Requests behind another one of their key: how long they wait, and what the waiting asks of the store. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { flush } from "../sim/world.ts";
import { LIVE } from "./stage.ts";
import { ANSWER, begin, codeOf, Two } from "./two.ts";

/** Operations that the nodes ask of the store from now on, by name. */
function counted({ world }: Two): Map<string, number> {
  const counts = new Map<string, number>();
  world.fault = (name) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return undefined;
  };
  return counts;
}

test("who waits behind another node's response reads, and submits again only when the key is free", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  const own = two.post(first, LIVE, "k");
  begin(own);
  await flush();
  const counts = counted(two);
  const waiting = two.post(second, LIVE, "k");
  await world.pass(20_000);
  expect(counts.get("submit")).toBe(1);
  expect(counts.get("responseOfKey")).toBeGreaterThan(10);
  world.nextStep = () => ({ kind: "unavailable" });
  await two.answer(first);
  expect(codeOf(await own)).toBe("upstream_unavailable");
  world.nextStep = () => ANSWER;
  await world.pass(LIMITS.llmPollMs);
  expect(counts.get("submit")).toBe(2);
  await two.answer(second);
  expect(await waiting).toMatchObject({ status: 200, replayed: false });
  await two.expectPaid(1);
});

test("a client waits 30 s in all, also behind a request of the same node that is itself a repeat", async () => {
  const two = await Two.open();
  const { world, first, second } = two;
  begin(two.post(first, LIVE, "k"));
  await flush();
  two.fault("submit", "slow");
  const [repeat, behind] = [two.post(second, LIVE, "k"), two.post(second, LIVE, "k")];
  let told = 0;
  for (const one of [repeat, behind]) begin(one.then(() => (told += 1)));
  await world.pass(20_000);
  const counts = counted(two);
  await two.answer(second);
  await world.pass(9_000);
  expect(told).toBe(0);
  await world.pass(2_000);
  expect(told).toBe(2);
  expect([codeOf(await repeat), codeOf(await behind)]).toEqual(Array(2).fill("submission_outcome_unknown"));
  expect(counts.get("submit") ?? 0).toBe(0);
  await two.answer(first);
  await two.expectPaid(1);
});
