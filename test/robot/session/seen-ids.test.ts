import { expect, test } from "bun:test";
import { SeenIds } from "../../../src/robot/replay.ts";

test("an id that was seen is always known, and one that was not is hardly ever taken for seen", () => {
  const ids = new SeenIds();
  const wrong = Array.from({ length: 1000 }, (_, step) => ids.see(`towel.${step}`)).filter(Boolean).length;
  expect(wrong).toBeLessThan(10);
  expect(Array.from({ length: 1000 }, (_, step) => ids.see(`towel.${step}`)).every(Boolean)).toBe(true);
});
