/**
 * What published policies declare, in small models of test/vectors/models: a model is loaded only where the engine's rows are those that
 * NumPy computed from its weights (test/vectors/flow_vla.py), within 1e-4.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { Failure } from "../../src/std/failure.ts";
import { bundleOf, largestDifference, parityOf, VARIANT_DIR } from "../bundle/built.ts";
import { Opened, ok, rowsOf } from "./opened.ts";

let engine: Engine;
beforeAll(async () => {
  engine = ok(await openEngine({ decodeThreads: 2 }));
});
afterAll(async () => await engine.close());

async function variant(name: string): Promise<Opened> {
  const opened = await Opened.with(engine, await bundleOf(`${VARIANT_DIR}/${name}`));
  const { given, actions } = await parityOf(opened.bundle);
  expect(opened.bundle.manifest.parity.tolerance).toBe(1e-4);
  expect(largestDifference(rowsOf(await opened.give(given)), actions)).toBeLessThan(1e-4);
  return opened;
}

test("cameras with pictures of two sizes, each of which reaches its own input", async () => {
  const opened = await variant("views");
  const { given } = await parityOf(opened.bundle);
  const rows = rowsOf(await opened.give(given));
  for (const camera of given.jpegs.keys()) {
    const jpegs = given.jpegs.with(camera, present(given.jpegs[(camera + 1) % 3], "a frame"));
    const changed = largestDifference(rowsOf(await opened.give({ ...given, jpegs })), rows);
    expect(changed).toBeGreaterThan(1e-3);
  }
  // Two at a time: the rows of a batch have room for both sizes.
  const runs = [await opened.run(given), await opened.run(given)];
  for (const run of runs) {
    expect(rowsOf(ok(await run.result))).toEqual(rows);
    run.commit();
    await run.released;
  }
  await opened.model.unload();
});

test("a frame that was put for a camera of another size is refused", async () => {
  const opened = await variant("views");
  const { given } = await parityOf(opened.bundle);
  const put = async (cameras: readonly number[]) => {
    const jpeg = present(given.jpegs[0], "a frame");
    const frames = cameras.map((camera) => ok(opened.model.framePut(camera, jpeg, 0)));
    for (const frame of frames) ok(await frame.decoded());
    const { prefix: _, ...plain } = given;
    return { ...plain, frames, state: new Float32Array(given.state), turn: 0 };
  };
  for (const bad of [
    [0, 2, 2],
    [0, 1, 0],
  ]) {
    const observation = await put(bad);
    expect(() => opened.model.observe(observation)).toThrow("put for a camera whose pictures are of another size");
    for (const frame of observation.frames) frame.drop();
  }
  // Cameras of one size: their tensors are alike.
  for (const good of [
    [0, 1, 2],
    [1, 0, 2],
  ]) {
    const run = ok(opened.model.observe(await put(good)));
    ok(await run.result);
    run.commit();
    await run.released;
  }
  await opened.model.unload();
});

const isRounding = (value: number) => Math.abs(value) < 1e-6;

test("rows relative to the current poses as rigid transforms, rotations as quaternions and by rows", async () => {
  const opened = await variant("poses");
  const { given } = await parityOf(opened.bundle);
  const rows = rowsOf(await opened.give(given));
  for (const row of rows) {
    for (const start of [3, 13]) {
      const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = row.slice(start, start + 6);
      expect([Math.hypot(a, b, c) - 1, Math.hypot(d, e, f) - 1, a * d + b * e + c * f].every(isRounding)).toBe(true);
    }
  }
  await opened.model.unload();
});

test("a state that is no rotation fails its run and no other", async () => {
  const opened = await variant("poses");
  const { given } = await parityOf(opened.bundle);
  for (const start of [3, 13]) {
    const bad = await opened.run({
      ...given,
      state: given.state.map((value, at) => (at >= start && at < start + 6 ? 0 : value)),
    });
    const result = await bad.result;
    expect(result instanceof Failure && [result.code, result.detail]).toEqual([
      "model_failure",
      expect.stringContaining(`the state's ${start === 3 ? "left" : "right"}_r1x begins no rotation`),
    ]);
    bad.abort();
    await bad.released;
  }
  expect((await opened.give(given)).rows).toBe(8);
  await opened.model.unload();
});

test("velocities leave as positions that begin at the state", async () => {
  const opened = await variant("velocities");
  const { given } = await parityOf(opened.bundle);
  const rows = rowsOf(await opened.give(given));
  const columns = opened.bundle.manifest.action.columns.slice(0, 6);
  // No row is further from the one before than 0.5 s of the velocity's deviation allow, though the absolute columns are.
  for (const column of columns.keys()) {
    const path = [present(given.state[column], "a joint"), ...rows.map((row) => present(row[column], "a joint"))];
    const steps = path.slice(1).map((value, at) => Math.abs(value - present(path[at], "a joint")));
    expect(Math.max(...steps)).toBeLessThan(0.5);
    expect(Math.max(...steps)).toBeGreaterThan(0.01);
  }
  await opened.model.unload();
});
