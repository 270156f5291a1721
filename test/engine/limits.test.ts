/** Reference bundles carry limits of plausible rows that their random weights can meet. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { present } from "../../src/std/assert.ts";
import { RandomStream } from "../../src/std/random.ts";
import { bundleOf, episodeOf, MODEL_DIR } from "../bundle/built.ts";
import { memoryOf } from "./memory.ts";
import { engineOfFile, failed, Opened } from "./opened.ts";

const engine = await engineOfFile();

for (const name of await readdir(join(MODEL_DIR, ".."))) {
  test(`${name}: every joint or position has max_jump and max_step, and chunks of any state in range pass them`, async () => {
    const bundle = await bundleOf(name);
    const { action, state, memory } = bundle.manifest;
    const limited = action.columns.filter(({ unit }) => unit === "rad" || unit === "m");
    expect(limited.length).toBe(action.space === "joint_position" ? 12 : 6);
    for (const { max_jump: jump, max_step: step } of limited)
      expect([typeof jump, typeof step]).toEqual(["number", "number"]);
    const opened = await Opened.with(engine, bundle, { slots: 1 });
    const chance = new RandomStream(name);
    const { given } = present((await episodeOf(bundle))[0], "an observation");
    for (let seed = 0; seed < 20; seed += 1) {
      const values = state.columns.map(({ name: wanted }) => {
        const { min, max } = present(
          action.columns.find((column) => column.name === wanted),
          wanted,
        );
        return min + ((max - min) * (chance.signed() + 1)) / 2;
      });
      const chunk = await opened.give({ ...given, state: values, seed }, memory ? { slot: 0 } : {});
      expect(chunk.rows).toBe(action.rows);
      if (memory) opened.model.sessionDrop(0);
    }
    await opened.model.unload();
  });

  test(`${name}: a state far from any row of the bundle fails the inference and keeps nothing`, async () => {
    const bundle = await bundleOf(name);
    const { state, memory } = bundle.manifest;
    const opened = await Opened.with(engine, bundle, { slots: 1 });
    const { given } = present((await episodeOf(bundle))[0], "an observation");
    const far = [50, ...given.state.slice(1)];
    const { kind, detail } = await failed(await opened.run({ ...given, state: far }, memory ? { slot: 0 } : {}));
    expect(kind).toBe("model_failed");
    expect(detail).toMatch(new RegExp(`^row 0, ${state.columns[0]?.name} is .* from the state's 50, max_jump is`));
    if (memory) expect(memoryOf(opened.model, 0).frames).toBe(0);
    await opened.model.unload();
  });
}
