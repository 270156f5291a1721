import { expect, test } from "bun:test";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { discard, prepare } from "../../src/service/models.ts";
import { emptyDir } from "../bundle/built.ts";
import { ok } from "../engine/opened.ts";

const SHIPPED = join(import.meta.dir, "../../dist/models");

test("no load begins before it is told to, and a load has what [gpu] says", async () => {
  const modelsDir = await emptyDir();
  await cp(join(SHIPPED, "molmoact2-yam"), join(modelsDir, "one"), { recursive: true });
  const gpu = { precision: "f16" } as const;
  const preparation = prepare({ modelsDir, gpu, robot: new Map(), dev: true, chunkSeconds: 10 });
  const engine = ok(await preparation.engine);
  expect(engine.stats().replicas).toBe(0);
  const [begun] = ok(await preparation.begin());
  if (begun === undefined) throw new Error("nothing was begun");
  const { refused } = ok(await begun.loaded);
  expect(engine.stats().replicas).toBe(1);
  expect(refused.find(({ device }) => device === "cuda:0")?.reason).toContain("precision is not f32");
  await discard(preparation);
});
