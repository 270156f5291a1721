/** The small size of `npm run prove sim`. */
import { expect, test } from "bun:test";
import { fakeGround, Outcomes, runHistory } from "./sim.ts";

test("random histories keep every promise, and meet every outcome", async () => {
  const outcomes = new Outcomes();
  for (let number = 0; number < 300; number += 1) outcomes.add(await runHistory(fakeGround(), number));
  expect(outcomes.missing).toEqual([]);
});
