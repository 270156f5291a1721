/** Several models in one engine: frames, runs and unloading of one do not affect the others. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { Problem } from "../../src/std/problem.ts";
import { parityOf } from "../bundle/built.ts";
import { Opened, ok } from "./opened.ts";

test("frames of two models put in one turn of the event loop are told apart", async () => {
  await using opened = await Opened.on("echo");
  const { engine, model, bundle } = opened;
  const { model: other } = await Opened.with(engine, bundle, { device: "echo" });
  const { given } = await parityOf(bundle);
  const frames = [model, other].map((one) => given.jpegs.map((jpeg) => ok(one.framePut(jpeg, 0))));
  for (const frame of frames.flat()) expect(await frame.decoded()).toBeUndefined();
  const { instruction, seed, step } = given;
  const state = new Float32Array(given.state);
  const runs = [model, other].map((one, index) =>
    ok(one.observe({ frames: frames[index] ?? [], instruction, state, seed, step, turn: 0 })),
  );
  for (const run of runs) {
    expect(ok(await run.result).rows).toBe(30);
    run.commit();
  }
  expect(engine.stats().frames_free).toBe(2 * LIMITS.framesMax);
});

test("a model that is being unloaded answers busy, and what was held of it is given back to nobody", async () => {
  await using opened = await Opened.on("echo");
  const { model } = opened;
  const { given } = await parityOf(opened.bundle);
  const jpeg = given.jpegs[0] ?? new Uint8Array();
  const [frame] = await opened.frames([jpeg]);
  const observation = await opened.observation();
  const gone = model.unload();
  expect(model.framePut(jpeg, 0)).toMatchObject({ kind: "busy" });
  expect(model.measure({ instruction: "x" })).toMatchObject({ kind: "busy" });
  expect(model.observe(observation)).toMatchObject({ kind: "busy" });
  frame?.drop();
  await gone;
});

test("an engine that is closed while a model loads waits until the load has ended", async () => {
  const { engine, bundle } = await Opened.on("echo");
  const load = engine.load({ bundle, device: "cpu", replicas: 1, threads: 1, slots: undefined });
  let ended = false;
  const outcome = load.then((loaded) => {
    ended = true;
    // It is given up, unless it was quicker.
    return loaded instanceof Problem ? loaded.message : "loaded";
  });
  await engine.close();
  expect(ended).toBe(true);
  expect(await outcome).toMatch(/^loaded$|the load was given up/);
});
