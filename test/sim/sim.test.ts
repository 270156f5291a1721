/** The small size of `npm run prove sim`. */
import { expect, test } from "bun:test";
import { fakeGround, nativeGround, Outcomes, runHistory } from "./sim.ts";

test("random histories on the real store, its steps in any order and what is not synced lost with the power, the wall clock jumping by days, keep every promise, and meet every outcome", async () => {
  const outcomes = new Outcomes(fakeGround());
  for (let number = 0; number < 300; number += 1) outcomes.add(await runHistory(fakeGround(), number));
  expect(outcomes.missing).toEqual([]);
}, 120_000);

test("the same histories keep every promise on the native engine, with memory and chunks as without faults", async () => {
  const ground = await nativeGround();
  const outcomes = new Outcomes(ground);
  for (let number = 0; number < 100; number += 1) outcomes.add(await runHistory(ground, number));
  const { frames_free, chunks_free, slots_held, slots_parked, sessions_brought_back } = ground.engine.stats();
  expect([frames_free, chunks_free, slots_held, slots_parked]).toEqual([3 * 256, 128, 0, 0]);
  // Two sessions take turns on one place.
  expect(sessions_brought_back).toBeGreaterThan(20);
  await ground.engine.close();
  expect(outcomes.missing).toEqual([]);
});
