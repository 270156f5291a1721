/** The small size of `npm run prove sim`, for the language models. */
import { expect, test } from "bun:test";
import { LlmOutcomes, runLlmHistory } from "./llm-sim.ts";

test("random histories of language models keep every promise, and meet every outcome", async () => {
  const outcomes = new LlmOutcomes();
  for (let number = 0; number < 60; number += 1) outcomes.add(await runLlmHistory(number));
  expect(outcomes.missing).toEqual([]);
}, 60_000);

test("the same number is the same history", async () => {
  const [one, again] = [await runLlmHistory(7), await runLlmHistory(7)];
  expect(again.trace).toEqual(one.trace);
});
