/**
 * Each published layout from its folder to rows: imported with what its publisher's own code computed, and compared with that at every
 * stage through the engine. test/vectors/README.md says how checkpoints and golden values are made.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { readBundle, readGolden } from "../../../src/bundle/read.ts";
import { computeRows } from "../../../src/cli/bundle/rows.ts";
import { gpuOptions } from "../../../src/config/gpu.ts";
import { compareGolden } from "../../../src/measure/golden/report.ts";
import type { Stage } from "../../../src/measure/golden/stages.ts";
import { sampleFrames } from "../../../src/measure/sample/drawing.ts";
import { present } from "../../../src/std/assert.ts";
import { ok } from "../../engine/opened.ts";
import { emptyDir } from "../built.ts";

const PUBLISHERS = join(import.meta.dir, "../../vectors/publishers");
const FLOW: readonly Stage[] = [
  "pictures",
  "normalised state",
  "tokens",
  "image tokens",
  "prefix cache",
  "velocity",
  "rows",
];

const LAYOUTS: readonly { readonly layout: string; readonly cases: number; readonly stages: readonly Stage[] }[] = [
  { layout: "pi05-lerobot", cases: 3, stages: FLOW },
  { layout: "pi05-openpi", cases: 2, stages: FLOW },
  { layout: "act", cases: 5, stages: ["pictures", "normalised state", "normalised rows", "rows"] },
  { layout: "act-other", cases: 5, stages: ["normalised state", "normalised rows", "rows"] },
  { layout: "smolvla", cases: 3, stages: FLOW },
];

for (const { layout, cases, stages } of LAYOUTS) {
  test(`${layout}: every stage of ${cases} cases is within 1e-4 of the publisher's code, tokens equal`, async () => {
    const folder = join(PUBLISHERS, layout);
    const out = join(await emptyDir(), "bundle");
    ok(
      await importBundle(join(folder, "checkpoint"), out, {
        ...{ id: `lab/${layout}:arm`, robot: join(folder, "robot.toml"), golden: join(folder, "golden") },
        ...{ precision: "f32", computeRows, draw: (size) => sampleFrames(0, size) },
      }),
    );
    const bundle = ok(await readBundle(out));
    const golden = ok(await readGolden((file) => present(bundle.paths.get(file), file), bundle.manifest));
    const where = { device: "cpu", gpu: gpuOptions() };
    const compared = ok(await compareGolden(bundle, present(golden, "golden values"), where));
    expect(compared.stages.map(({ stage }) => stage)).toEqual([...stages]);
    expect([compared.cases, compared.off]).toEqual([cases, undefined]);
  });
}
