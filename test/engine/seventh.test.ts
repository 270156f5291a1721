/** Adding a seventh model of a known family needs a folder, not code. */
import { expect, test } from "bun:test";
import { present } from "../../src/std/assert.ts";
import { episodeOf } from "../bundle/built.ts";
import { ARM, armBundle, SEVENTH, seventhBundle } from "../bundle/seventh.ts";
import { engineOfFile, Opened, rowsOf } from "./opened.ts";

const engine = await engineOfFile();

for (const family of ["flow-vla", "world-action"] as const) {
  test(`a new model of the family ${family} is built, loaded and run from its folder`, async () => {
    const opened = await Opened.with(engine, await seventhBundle(family), { slots: 3 });
    expect([opened.model.id, opened.model.slots]).toEqual([SEVENTH[family], family === "flow-vla" ? 0 : 3]);
    const { given } = present((await episodeOf(opened.bundle))[0], "an observation");
    const slot = opened.model.slots === 0 ? {} : { slot: 2 };
    const first = await opened.give(given, slot);
    expect([first.rows, first.columns, rowsOf(first).flat().every(Number.isFinite)]).toEqual([8, 14, true]);
    if (opened.model.slots > 0) {
      const jpegs = given.jpegs.flatMap((jpeg) => [jpeg, jpeg]);
      const resets: boolean[] = [];
      for (let step = 1; step < 5; step += 1)
        resets.push((await opened.give({ ...given, jpegs, step }, slot)).cacheReset);
      expect(resets).toEqual([false, false, true, false]);
    }
    await opened.model.unload();
  });
}

test("a robot that is not a YAM is built, loaded and run from its folder: one arm of seven values, two cameras", async () => {
  const opened = await Opened.with(engine, await armBundle());
  const { given } = present((await episodeOf(opened.bundle))[0], "an observation");
  const chunk = await opened.give(given);
  const isInside = rowsOf(chunk)
    .flat()
    .every((value) => value >= -180 && value <= 180);
  expect([opened.model.id, given.state.length, chunk.rows, chunk.columns, isInside]).toEqual([ARM, 7, 50, 7, true]);
  await opened.model.unload();
});
