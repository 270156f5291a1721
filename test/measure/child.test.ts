import { expect, test } from "bun:test";
import { join } from "node:path";
import { startChild } from "../../src/measure/child.ts";
import { sampleOf } from "../../src/measure/sample/observation.ts";
import { emptyDir } from "../bundle/built.ts";
import { importAct } from "../bundle/import/robots.ts";
import { ok } from "../engine/opened.ts";

test("bundles with ids of an operator's own are measured without prices; the one that is measured must be there", async () => {
  const modelsDir = await emptyDir();
  for (const name of ["one", "two"]) await importAct(join(modelsDir, name), `lab/${name}`);
  const child = ok(await startChild({ device: "echo", model: "lab/two", modelsDir }));
  const sample = await sampleOf(child.service, "lab/two");
  await child.stop();
  expect(sample).toMatchObject({ cameras: ["front", "side"], frameSize: { width: 70, height: 33 } });
  const message = expect.stringContaining("has no bundle of vendorB/molmoact2:yam, but of lab/one, lab/two");
  expect(await startChild({ device: "echo", modelsDir })).toMatchObject({ message });
}, 60_000);
