/** Every shipped bundle on the native engine against the independent NumPy implementation: a chunk, or a whole episode. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { bundleOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { engineOfFile, Opened, rowsOf } from "./opened.ts";

const engine = await engineOfFile();

for (const name of await readdir(join(MODEL_DIR, ".."))) {
  test(`${name} equals its golden vectors within the manifest's tolerance`, async () => {
    const opened = await Opened.with(engine, await bundleOf(name), { slots: 2 });
    const { manifest } = opened.bundle;
    for (const { chunk, golden } of await opened.episode(1)) {
      expect(largestDifference(rowsOf(chunk), golden.actions)).toBeLessThan(manifest.parity.tolerance);
      expect(chunk.cacheReset).toBe(golden.cacheReset);
    }
    await opened.model.unload();
  });
}
