/** Golden values of a model without noise and without an instruction: onnxruntime-node's rows of its one graph. */
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NormStats, Parity } from "../../src/bundle/manifest.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import { compareGolden } from "../../src/measure/golden/report.ts";
import { present } from "../../src/std/assert.ts";
import { ok } from "../engine/opened.ts";
import { actBundle } from "./act-bundle.ts";
import { emptyDir } from "./built.ts";
import { f32, writeTensors } from "./import/tensor-files.ts";

/** The comparison with rows that are `off` in one column and are called `name`. */
async function comparison(off: number, name = "0.rows") {
  const { manifest, paths } = await actBundle();
  const read = async (path: string) => JSON.parse(await readFile(present(paths.get(path), path), "utf8"));
  const { observations }: Parity = await read(manifest.parity.file);
  const { state, actions } = present(observations[0], "an observation");
  const { mean, std }: NormStats["state"] = (await read(manifest.norm)).state;
  const rows = actions.flatMap(([first = 0, ...rest]) => [first + off, ...rest]);
  const values = join(await emptyDir(), "golden.safetensors");
  await writeTensors(values, {
    "0.state": f32([state.length], (at) => ((state[at] ?? 0) - (mean?.[at] ?? 0)) / (std?.[at] ?? 1)),
    [name]: f32([actions.length, manifest.action.columns.length], (at) => rows[at] ?? 0),
  });
  const golden = { cases: "parity/golden.json", values: "parity/golden.safetensors" };
  const bundle = {
    manifest: { ...manifest, parity: { ...manifest.parity, golden } },
    paths: new Map([...paths, [golden.values, values]]),
  };
  const cases = [{ instruction: "", state, frames: { top: "top.jpg", wrist: "wrist.jpg" } }];
  const where = { device: "cpu", gpu: gpuOptions() };
  return await compareGolden(bundle, { provenance: "a test", cases }, where);
}

test("its state and its rows are compared, and rows that are off are found", async () => {
  const right = ok(await comparison(0));
  expect(right.off).toBeUndefined();
  expect(right.stages.map(({ stage }) => stage)).toEqual(["normalised state", "rows"]);
  const off = { stage: "rows", where: expect.stringContaining("column 0") };
  expect(ok(await comparison(0.01)).off).toMatchObject(off);
});

test("values without rows, whose name is misspelt, are a problem: nothing would be compared", async () => {
  const message = expect.stringContaining("the golden values have no 0.rows; ");
  expect(await comparison(0, "0.row")).toMatchObject({ message });
});
