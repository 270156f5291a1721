/**
 * Mistakes that others made with these models, and their like: each is put into a published checkpoint or into the bundle that is imported of
 * it. Import refuses it by name, or verify names the stage.
 */
import { describe, expect, test } from "bun:test";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { type Bundle, readBundle, readGolden } from "../../../src/bundle/read.ts";
import type { Precision } from "../../../src/bundle/weights.ts";
import { gpuOptions } from "../../../src/config/gpu.ts";
import { compareGolden } from "../../../src/measure/golden/report.ts";
import { present } from "../../../src/std/assert.ts";
import { Problem } from "../../../src/std/problem.ts";
import { ok } from "../../engine/opened.ts";
import { emptyDir } from "../built.ts";
import { spoiledCopy } from "../spoiled-bundle.ts";
import { scaled } from "../spoiled-graph.ts";
import { IN_BUNDLE } from "./bundle-mistakes.ts";
import { IN_CHECKPOINT } from "./checkpoint-mistakes.ts";
import { ACT, ALL, type Mistake, SMOLVLA } from "./mistake.ts";
import { PUBLISHERS } from "./robots.ts";
import { type ChangeFolder, json, values } from "./spoiled-checkpoint.ts";

/** The import of a layout's checkpoint, spoiled. */
async function imported(layout: string, precision: Precision, spoil?: ChangeFolder): Promise<Bundle | Problem> {
  const folder = join(PUBLISHERS, layout);
  const [dir, out] = [join(await emptyDir(), "checkpoint"), join(await emptyDir(), "bundle")];
  await cp(join(folder, "checkpoint"), dir, { recursive: true });
  await spoil?.(dir);
  const made = await importBundle(dir, out, {
    ...{ id: `lab/${layout}:arm`, robot: join(folder, "robot.toml"), golden: join(folder, "golden"), precision },
    computeRows: async (_, { observations }) => observations,
    draw: async () => [new Uint8Array()],
  });
  return made instanceof Problem ? made : ok(await readBundle(out));
}

const right = new Map<string, Promise<Bundle | Problem>>();

/** The import of a checkpoint in which nothing is wrong, once for all tests. */
async function importedRight(layout: string, precision: Precision): Promise<Bundle> {
  const key = `${layout} ${precision}`;
  const bundle = right.get(key) ?? imported(layout, precision);
  right.set(key, bundle);
  return ok(await bundle);
}

/** The first stage that is off. */
async function firstOff(bundle: Bundle): Promise<string | undefined> {
  const golden = ok(await readGolden((file) => present(bundle.paths.get(file), file), bundle.manifest));
  const where = { device: "cpu", gpu: gpuOptions() };
  return ok(await compareGolden(bundle, present(golden, "golden values"), where)).off?.stage;
}

function check<How>(mistakes: readonly Mistake<How>[], answer: (layout: string, how: How) => Promise<unknown>) {
  for (const [what, layouts, how, caught] of mistakes) {
    test.each([...layouts])(`${what}: %s`, async (layout) => {
      expect(await answer(layout, how)).toEqual(typeof caught === "string" ? caught : expect.stringMatching(caught));
    });
  }
}

// Matrices of these checkpoints are bfloat16 numbers, so that bf16 weights are judged by the same values within the same limit.
describe.each(["f32", "bf16"] as const)("%s weights", (precision) => {
  test.each(ALL)("nothing is wrong without a mistake: %s", async (layout) => {
    const bundle = await importedRight(layout, precision);
    expect([bundle.manifest.parity.golden?.rounded, await firstOff(bundle)]).toEqual([undefined, undefined]);
  });

  check(IN_CHECKPOINT, async (layout, spoil) => {
    const bundle = await imported(layout, precision, spoil);
    return bundle instanceof Problem ? bundle.message : await firstOff(bundle);
  });

  check(IN_BUNDLE, async (layout, spoil) => {
    const bundle = await importedRight(layout, precision);
    return await firstOff(ok(await readBundle(await spoiledCopy(bundle, spoil))));
  });
});

test("a size that no tensor has takes no memory, with int8 either", async () => {
  const wide = await imported(
    ACT,
    "int8",
    json("config.json", (config) => (config.dim_model = 65_536)),
  );
  expect(wide).toMatchObject({ message: expect.stringContaining("expected [65536") });
});

test("weights that import rounds are marked: int8, and bf16 of a matrix with more bits", async () => {
  const finer = values(/lm_expert\.layers\.0\.mlp\.down_proj/, scaled(1.001));
  const marks = [
    await imported(SMOLVLA, "int8"),
    await imported(SMOLVLA, "bf16", finer),
    await imported(SMOLVLA, "f32", finer),
  ];
  expect(marks.map((bundle) => ok(bundle).manifest.parity.golden?.rounded)).toEqual([true, true, undefined]);
});
