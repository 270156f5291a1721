/** A bundle whose own tolerance is too tight on a device: here one whose manifest asks for more than a CPU computes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpuReport } from "../../../src/measure/gpu/report.ts";
import { runGpuSuite } from "../../../src/measure/gpu/suite.ts";
import { Problem } from "../../../src/std/problem.ts";
import { from } from "../origin.ts";

const TIGHT = 1e-12;
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tendon-within-"));
  const bundle = join(folder, "tight");
  await cp(join(import.meta.dir, "../../../dist/models/molmoact2-yam"), bundle, { recursive: true });
  const path = join(bundle, "manifest.json");
  const manifest = JSON.parse(await readFile(path, "utf8")) as { parity: { tolerance: number } };
  manifest.parity.tolerance = TIGHT;
  await writeFile(path, JSON.stringify(manifest));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

const plan = () => ({
  ...{ devices: ["cpu"], models: join(folder, "tight"), chunks: 2, batchMax: 1, gpu: {} },
});

test("it is refused with its own tolerance", async () => {
  expect(await runGpuSuite(plan())).toMatchObject({ message: expect.stringContaining("parity") });
});

test("with a wider bound it is measured, over a socket too, and the report has both bounds and the difference", async () => {
  const measured = await runGpuSuite({ ...plan(), within: 0.2 });
  if (measured instanceof Problem) throw new Error(measured.message);
  const [one] = measured;
  expect(one?.parity).toMatchObject({ bound: 0.2, tolerance: TIGHT });
  const { text, json } = gpuReport(from, measured);
  const figures = JSON.stringify(json);
  expect(text).toMatch(
    /bound\s2\.0e-1\s\(--within,\sin\splace\sof\sthe\sbundle's\s1\.0e-12,\swith\swhich\sno\sservice/,
  );
  expect(figures).toMatch(/"part":"socket frames with it","batch":1,"figure":"p50_ms","value":\d/);
  expect(figures).toMatch(/"part":"parity","batch":1,"figure":"difference_max","value":\d/);
  // What the service was given is gone, and the bundle is as it was.
  expect(await readdir(folder)).toEqual(["tight"]);
  const { parity } = JSON.parse(await readFile(join(folder, "tight/manifest.json"), "utf8"));
  expect(parity.tolerance).toBe(TIGHT);
}, 60_000);
