/** The native engine through its TypeScript interface: results, refusals, and that all slots are freed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Fault } from "../../src/engine/fault.ts";
import { LIMITS } from "../../src/limits.ts";
import { present } from "../../src/std/assert.ts";
import { largestDifference, parityOf } from "../bundle/built.ts";
import { Reference, referenceChunk } from "../bundle/reference.ts";
import { failed, Opened, ok, realFrames, refusal, rowsOf } from "./opened.ts";

let cpu: Opened;
let echo: Opened;

beforeAll(async () => {
  cpu = await Opened.on("cpu");
  echo = await Opened.on("echo");
});

afterAll(async () => {
  await echo.engine.close();
  await cpu.engine.close();
});

/** All slots are free: nothing leaked, nothing runs. */
function expectIdle({ engine }: Opened): void {
  const { frames_free, chunks_free } = engine.stats();
  expect({ frames_free, chunks_free }).toEqual({ frames_free: LIMITS.framesMax, chunks_free: LIMITS.chunksMax });
}

describe("a chunk", () => {
  test("equals the golden vector of the independent NumPy implementation within the manifest's tolerance", async () => {
    const { actions } = await parityOf(cpu.bundle);
    const worst = largestDifference(rowsOf(await cpu.chunk()), actions);
    expect(worst).toBeLessThan(cpu.bundle.manifest.parity.tolerance);
  });

  test("equals one computed with onnxruntime-node and plain TypeScript within 1e-4, drawn and real frames", async () => {
    const { given } = await parityOf(cpu.bundle);
    const real = await realFrames();
    for (const jpegs of real === undefined ? [given.jpegs] : [given.jpegs, real]) {
      for (const [seed, step] of [
        [0, 0],
        [2 ** 53 - 1, 7],
      ] as const) {
        const theirs = await referenceChunk(cpu.bundle, { ...given, jpegs, seed, step });
        const ours = await cpu.chunk({ seed, step }, jpegs);
        expect(largestDifference(rowsOf(ours), theirs)).toBeLessThan(1e-4);
      }
    }
  });

  test("is 30 rows of 14 finite values inside their columns' ranges", async () => {
    const chunk = await cpu.chunk();
    const { columns } = cpu.bundle.manifest.action;
    expect([chunk.rows, chunk.columns, chunk.actions.length]).toEqual([30, 14, 420]);
    for (const row of rowsOf(chunk)) {
      for (const [index, value] of row.entries()) {
        const column = columns[index];
        expect(value >= Math.fround(column?.min ?? Number.NaN) && value <= Math.fround(column?.max ?? Number.NaN)).toBe(
          true,
        );
      }
    }
  });

  test("has the same bits alone, in a batch and after a cancelled inference", async () => {
    const alone = await cpu.chunk();
    const observations = await Promise.all(
      Array.from({ length: 6 }, (_, seed) => cpu.observation(seed === 3 ? {} : { seed })),
    );
    const runs = observations.map((observation) => ok(cpu.model.observe(observation)));
    runs[1]?.cancel();
    const results = await Promise.all(runs.map((run) => run.result));
    expect(results[1]).toBeInstanceOf(Fault);
    const third = ok(results[3] ?? new Fault("model_failed", "no third result"));
    expect([...third.actions]).toEqual([...alone.actions]);
    for (const run of runs) run.abort();
    expect([...(await cpu.chunk()).actions]).toEqual([...alone.actions]);
    expectIdle(cpu);
  });

  test("has the same bits whatever ran before it, and those of full padding but for rounding, at every length of prompt", async () => {
    const { given } = await parityOf(cpu.bundle);
    const { buckets = [], tokens_max } = cpu.bundle.manifest.prompt;
    const reference = await Reference.open(cpu.bundle);
    const words = Array.from({ length: 60 }, (_, count) => "the cube and ".repeat(count + 1).slice(0, 5 * (count + 1)));
    // The longest instruction of each length that a prompt may be padded to.
    const instructions = [...buckets, tokens_max].flatMap((length) => {
      return words.findLast((text) => reference.promptIds(text, given.state).length <= length) ?? [];
    });
    expect(new Set(instructions).size).toBe(buckets.length + 1);
    const first: Float32Array[] = [];
    for (const instruction of instructions) {
      const ours = await cpu.chunk({ instruction });
      first.push(ours.actions);
      const theirs = await referenceChunk(cpu.bundle, { ...given, instruction });
      expect(largestDifference(rowsOf(ours), theirs)).toBeLessThan(1e-4);
    }
    for (const [index, instruction] of instructions.entries()) {
      expect((await cpu.chunk({ instruction })).actions).toEqual(present(first[index], "a chunk"));
    }
  });

  test("has the same bits with one thread, with two, and with those that the machine has for it", async () => {
    const alone = await cpu.chunk();
    for (const threads of [2, undefined]) {
      const other = await Opened.with(cpu.engine, cpu.bundle, { threads });
      expect((await other.chunk()).actions).toEqual(alone.actions);
      await other.model.unload();
    }
  });

  test("images, their order, instruction, state, seed and step each change it", async () => {
    const { given } = await parityOf(cpu.bundle);
    const base = rowsOf(await cpu.chunk());
    const [top, left, right] = given.jpegs;
    const state = new Float32Array(given.state);
    state[0] = (state[0] ?? 0) + 0.1;
    const changed = [
      await cpu.chunk(
        {},
        [left, top, right].map((jpeg) => jpeg ?? new Uint8Array()),
      ),
      await cpu.chunk({ instruction: "open the drawer" }),
      await cpu.chunk({ state }),
      await cpu.chunk({ seed: given.seed + 1 }),
      await cpu.chunk({ step: given.step + 1 }),
    ];
    for (const chunk of changed) expect(largestDifference(rowsOf(chunk), base)).toBeGreaterThan(1e-2);
  });

  test("counts the same image, text and state tokens before the inference as after it", async () => {
    const { given } = await parityOf(cpu.bundle);
    const chunk = await cpu.chunk();
    expect(cpu.model.measure({ instruction: given.instruction })).toBe(chunk.promptTokens);
    expect(chunk.cachedTokens).toBe(0);
    expect(chunk.promptTokens).toBeGreaterThan(3 * cpu.bundle.manifest.image.tokens + 14);
  });

  test("after warm-up our library allocates nothing for it", async () => {
    for (const opened of [cpu, echo]) {
      expect(await opened.allocations(20)).toBe(0);
    }
  });

  test.each(["pillow-bicubic", "torch-bilinear", "torch-bilinear-u8", "area"] as const)(
    "the filter %s allocates nothing either",
    async (filter) => {
      const { manifest, ...bundle } = echo.bundle;
      const filtered = { ...bundle, manifest: { ...manifest, image: { ...manifest.image, filter } } };
      const opened = await Opened.with(echo.engine, filtered, { device: "echo" });
      expect(await opened.allocations(20)).toBe(0);
      await opened.model.unload();
    },
  );

  test("on echo it is zeros of the model's shape, and frames are decoded all the same", async () => {
    const before = echo.engine.stats().frames_decoded;
    const chunk = await echo.chunk();
    expect([chunk.rows, chunk.columns]).toEqual([30, 14]);
    expect(chunk.actions.every((value) => value === 0)).toBe(true);
    expect(echo.engine.stats().frames_decoded - before).toBe(3);
    expect(echo.model.device).toBe("echo");
  });
});

describe("what is refused", () => {
  test("an instruction longer than the prompt is refused, before and at the inference; the caller keeps the frames", async () => {
    const instruction = "pick up the block ".repeat(200);
    expect(cpu.model.measure({ instruction })).toMatchObject({ kind: "instruction_too_long" });
    const observation = await cpu.observation({ instruction });
    expect(cpu.model.observe(observation)).toMatchObject({ kind: "instruction_too_long" });
    for (const frame of observation.frames) frame.drop();
    expectIdle(cpu);
  });

  test("a damaged frame, with the decoder's reason", async () => {
    const { given } = await parityOf(cpu.bundle);
    const jpeg = given.jpegs[0] ?? new Uint8Array();
    const frame = ok(cpu.model.framePut(jpeg.subarray(0, jpeg.length / 2), 0));
    const failure = await frame.decoded();
    expect(failure).toMatchObject({ kind: "bad_image" });
    expect(failure?.message).toContain("truncated");
    frame.drop();
    expectIdle(cpu);
  });

  test("a frame of another size than a model takes that resizes none, with both sizes", async () => {
    const { manifest, ...bundle } = echo.bundle;
    const { filter, ...image } = manifest.image;
    const exact = { ...bundle, manifest: { ...manifest, image: { ...image, resize: "exact" as const } } };
    const opened = await Opened.with(echo.engine, exact, { device: "echo" });
    const { jpegs } = (await parityOf(echo.bundle)).given;
    const frames = jpegs.map((jpeg) => ok(opened.model.framePut(jpeg, 0)));
    const message = "the frame is refused: it has 160 x 120 pixels, and the model takes 112 x 112 alone";
    expect(await frames[0]?.decoded()).toMatchObject({ kind: "wrong_size", message });
    for (const frame of frames) frame.drop();
    await Promise.all(frames.map((frame) => frame.freed()));
    const again = jpegs.map((jpeg) => ok(opened.model.framePut(jpeg, 0)));
    const observation = await opened.observation({}, []);
    expect(await failed(ok(opened.model.observe({ ...observation, frames: again })))).toMatchObject({
      kind: "wrong_size",
    });
    await opened.model.unload();
  });

  test("what a frame's decode took is told, of a right and of a damaged one: it may be unpaid work", async () => {
    const { given } = await parityOf(cpu.bundle);
    const file = given.jpegs[0] ?? new Uint8Array();
    const right = ok(cpu.model.framePut(file, 0));
    expect(right.decodeMs).toBe(0);
    expect(await right.decoded()).toBeUndefined();
    expect(right.decodeMs).toBeGreaterThan(0);
    right.drop();
    // Its end is gone: the decoder finds out at the end of its work.
    const damaged = ok(cpu.model.framePut(file.subarray(0, file.length - 200), 0));
    expect(await damaged.decoded()).toMatchObject({ kind: "bad_image" });
    expect(damaged.decodeMs).toBeGreaterThan(0);
    // Dropped at once: those that a decoder had by then are decoded to the end, and are told as well.
    const dropped = Array.from({ length: 8 }, () => ok(cpu.model.framePut(file, 0)));
    await Promise.race(dropped.slice(2).map((frame) => frame.decoded()));
    for (const frame of dropped) frame.drop();
    await Promise.all(dropped.map((frame) => frame.freed()));
    const spent = dropped.filter(({ decodeMs }) => decodeMs > 0).length;
    expect(spent).toBeGreaterThan(0);
    expectIdle(cpu);
  });

  test("more frames than there are slots: busy, and all come back", async () => {
    const { given } = await parityOf(echo.bundle);
    const jpeg = given.jpegs[0] ?? new Uint8Array();
    const frames = Array.from({ length: LIMITS.framesMax }, () => ok(echo.model.framePut(jpeg, 0)));
    expect(echo.model.framePut(jpeg, 0)).toMatchObject({ kind: "busy" });
    for (const frame of frames) frame.drop();
    await Promise.all(frames.map((frame) => frame.decoded()));
    expectIdle(echo);
  });

  test("a full queue that is cancelled answers each inference, and every slot comes back", async () => {
    // One batch of the CPU model takes long enough that the queue fills behind it; all frame slots are taken.
    const observations = [];
    for (let index = 0; index < Math.floor(LIMITS.framesMax / 3); index++) observations.push(await cpu.observation());
    const runs = observations.map((observation) => ok(cpu.model.observe(observation)));
    for (const run of runs) run.cancel();
    const results = await Promise.all(runs.map((run) => run.result));
    expect(results.every((result) => result instanceof Fault && result.kind === "cancelled")).toBe(true);
    for (const run of runs) run.abort();
    // The native side still has to process each of them.
    while (cpu.engine.stats().chunks_free < LIMITS.chunksMax) await Bun.sleep(1);
    expectIdle(cpu);
  });

  test("a model that needs another device, with the reason", async () => {
    const reason = await refusal(cpu.engine, cpu.bundle, { device: "cuda:0" });
    expect(reason).toContain("libonnxruntime_providers_cuda.so is not beside");
  });

  test("a manifest that counts other image tokens than its graphs make", async () => {
    const { manifest, paths } = cpu.bundle;
    const bundle = { paths, manifest: { ...manifest, image: { ...manifest.image, tokens: 63 } } };
    expect(await refusal(cpu.engine, bundle)).toContain("shape");
  });

  test("graphs that are no graphs, with the reason, and their place is free again", async () => {
    const paths = new Map(cpu.bundle.paths);
    paths.set("prefill.onnx", paths.get("tokenizer.json") ?? "");
    const broken = { manifest: cpu.bundle.manifest, paths };
    for (let index = 0; index < 20; index++) expect(await refusal(cpu.engine, broken)).toContain("Protobuf");
  });
});

describe("ends", () => {
  test("a cancelled inference is answered at once and never charged a slot", async () => {
    const before = cpu.engine.stats().chunks_cancelled;
    const observations = [];
    for (let index = 0; index < 8; index++) observations.push(await cpu.observation());
    // In one turn of the event loop: none of them can end before it is cancelled.
    const runs = observations.map((observation) => ok(cpu.model.observe(observation)));
    for (const run of runs) run.cancel();
    for (const run of runs) expect(await run.result).toMatchObject({ kind: "cancelled" });
    for (const run of runs) run.abort();
    while (cpu.engine.stats().chunks_free < LIMITS.chunksMax) await Bun.sleep(1);
    expect(cpu.engine.stats().chunks_cancelled).toBe(before + 8);
    expectIdle(cpu);
  });

  test("two replicas work side by side and give the same bits", async () => {
    await using two = await Opened.on("cpu", 2);
    const alone = await cpu.chunk();
    const chunks = await Promise.all(Array.from({ length: 12 }, () => two.chunk()));
    for (const chunk of chunks) expect([...chunk.actions]).toEqual([...alone.actions]);
    expectIdle(two);
  });

  test("closing cancels the inferences that wait or run and joins every thread", async () => {
    const opened = await Opened.on("cpu");
    const runs = [];
    for (let index = 0; index < 12; index++) runs.push(ok(opened.model.observe(await opened.observation())));
    const frame = (await opened.frames([(await parityOf(opened.bundle)).given.jpegs[0] ?? new Uint8Array()]))[0];
    const results = Promise.all(runs.map((run) => run.result));
    await opened.engine.close();
    for (const result of await results) {
      if (result instanceof Fault) expect(result.kind).toBe("cancelled");
    }
    // The engine's end has freed everything: freeing it again does nothing.
    for (const run of runs) run.abort();
    frame?.drop();
  });

  test("unloading gives all tensor memory back", async () => {
    const before = cpu.engine.stats().tensor_bytes;
    const { model } = await Opened.with(cpu.engine, cpu.bundle, { device: "echo" });
    expect(cpu.engine.stats().tensor_bytes).toBeGreaterThan(before);
    await model.unload();
    expect(cpu.engine.stats().tensor_bytes).toBe(before);
  });
});
