/** Every shipped bundle on the native engine against the independent NumPy implementation: a chunk, or a whole episode. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { Opened, ok, rowsOf } from "./opened.ts";

let engine: Engine;
beforeAll(async () => {
  engine = ok(await openEngine({ decodeThreads: 2 }));
});
afterAll(async () => await engine.close());

for (const name of await readdir(join(MODEL_DIR, ".."))) {
  test(`${name} equals its golden vectors within the manifest's tolerance`, async () => {
    const opened = await Opened.with(engine, await bundleOf(name), { slots: 2 });
    const { manifest } = opened.bundle;
    const slot = manifest.memory === null ? {} : { slot: 1 };
    for (const { given, actions, cacheReset } of await episodeOf(opened.bundle)) {
      const chunk = await opened.give(given, slot);
      expect(largestDifference(rowsOf(chunk), actions)).toBeLessThan(manifest.parity.tolerance);
      expect(chunk.cacheReset).toBe(cacheReset);
    }
    await opened.model.unload();
  });
}
