/** Fairness between accounts, cancellation and batching, on the native engine. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import sharp from "sharp";
import type { Inference } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { LIMITS } from "../../src/limits.ts";
import { present } from "../../src/std/assert.ts";
import { RandomStream } from "../../src/std/random.ts";
import { parityOf } from "../bundle/built.ts";
import type { GoldenInput } from "../bundle/reference.ts";
import { Opened } from "./opened.ts";

let cpu: Opened;
let given: GoldenInput;
beforeAll(async () => {
  cpu = await Opened.on("cpu");
  ({ given } = await parityOf(cpu.bundle));
});
afterAll(async () => await cpu.engine.close());

/** Waits for the outcome, ends the inference, and notes in which order it came. */
async function finished(run: Inference, name: string, order: string[]): Promise<void> {
  await run.result;
  order.push(name);
  run.abort();
  await run.released;
}

test("with 64 inferences of one account queued, another account's robot waits at most two batches", async () => {
  const { batch } = cpu.bundle.manifest;
  const order: string[] = [];
  const many = Array.from({ length: 64 }, () => cpu.observed(given, { turn: 1 }));
  const waiting = (await Promise.all(many)).map((observation) => cpu.model.observe(observation));
  const robot = await cpu.observed(given, { turn: 2 });
  const all = waiting.map((run) => finished(run as Inference, "many", order));
  const before = order.length;
  all.push(finished(cpu.model.observe(robot) as Inference, "robot", order));
  await Promise.all(all);
  // It waits for the batch that runs, and then for its own.
  expect(order.indexOf("robot") - before).toBeLessThan(2 * batch);
  expect(order.length).toBe(65);
}, 60_000);

test("frames take turns too: one account's many do not hold up another's", async () => {
  // Large images, so that all are queued before the first few are decoded.
  const random = new RandomStream("frame");
  const pixels = Uint8Array.from({ length: 640 * 360 * 3 }, () => random.word() & 0xff);
  const raw = { width: 640, height: 360, channels: 3 } as const;
  const jpeg = new Uint8Array(await sharp(pixels, { raw }).jpeg({ quality: 50 }).toBuffer());
  const order: string[] = [];
  const put = (turn: number, name: string) => {
    const frame = cpu.model.framePut(jpeg, turn);
    if (frame instanceof Fault) throw new Error(frame.message);
    return frame.decoded().then(() => {
      order.push(name);
      frame.drop();
    });
  };
  const decodedBefore = cpu.engine.stats().frames_decoded;
  const frames = Array.from({ length: 200 }, () => put(1, "many"));
  const { frames_decoded } = cpu.engine.stats();
  frames.push(put(2, "robot"));
  await Promise.all(frames);
  // Those already decoded, those that the threads had taken, and one round.
  expect(order.indexOf("robot") - (frames_decoded - decodedBefore)).toBeLessThan(20);
});

test("an inference that waits is taken back at once: the model never sees it, and its slots are free", async () => {
  const [running, ...waiting] = await Promise.all(Array.from({ length: 6 }, () => cpu.observed(given)));
  const before = cpu.engine.stats();
  const first = cpu.model.observe(present(running, "an observation")) as Inference;
  const rest = waiting.map((one) => cpu.model.observe(one) as Inference);
  const taken = rest.map((run, index) => {
    if (index % 2 === 0) return run.withdraw();
    run.cancel();
    return true;
  });
  for (const run of rest) {
    expect(await run.result).toMatchObject({ kind: "cancelled" });
    run.abort();
  }
  await Promise.all(rest.map(({ released }) => released));
  expect(rest.filter((_, index) => index % 2 === 0).map(({ modelMs }) => modelMs)).toEqual([0, 0, 0]);
  await finished(first, "", []);
  // One of them may have been taken into the batch of the first.
  const after = cpu.engine.stats();
  expect(taken.filter(Boolean).length).toBeGreaterThanOrEqual(4);
  expect(after.chunks_run - before.chunks_run).toBeLessThanOrEqual(2);
  expect([after.frames_free, after.chunks_free]).toEqual([LIMITS.framesMax, LIMITS.chunksMax]);
});

/** A run that a replica has taken, which on a busy machine may be late: one that could be taken back is not it. */
async function started(): Promise<Inference> {
  for (;;) {
    const run = cpu.model.observe(await cpu.observed(given)) as Inference;
    await Bun.sleep(2);
    if (!run.withdraw()) return run;
    await run.result;
    run.abort();
    await run.released;
  }
}

test("a stopped inference ends before its next flow step and frees its slot; withdraw leaves a started one alone", async () => {
  const run = await started();
  const before = cpu.engine.stats();
  expect(run.withdraw()).toBe(false);
  run.cancel();
  expect(await run.result).toMatchObject({ kind: "cancelled" });
  run.abort();
  await run.released;
  // Somebody may have to account for it.
  expect(run.modelMs).toBeGreaterThan(0);
  const after = cpu.engine.stats();
  expect([after.chunks_run - before.chunks_run, after.chunks_cancelled - before.chunks_cancelled]).toEqual([0, 1]);
  expect([after.frames_free, after.chunks_free]).toEqual([LIMITS.framesMax, LIMITS.chunksMax]);
});

test("one failed inference of a batch leaves the others alone", async () => {
  const observations = await Promise.all(
    [0, 1, 2].map((turn) => cpu.observed(given, { turn, ...(turn === 2 ? { failStep: 3 } : {}) })),
  );
  const runs = observations.map((one) => cpu.model.observe(one) as Inference);
  const outcomes = await Promise.all(runs.map(({ result }) => result));
  expect(outcomes.map((one) => one instanceof Fault && one.kind)).toEqual([false, false, "model_failed"]);
  for (const run of runs) run.abort();
});
