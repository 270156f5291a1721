/**
 * What does a frame cost above the bare libjpeg-turbo decode, and do frames decode side by side?
 *
 * One frame is measured inside the native library by its own program (native/src/bin/decode_bench.rs), one thread, the bare decode and
 * the whole way to the tensor alternating. Three frames are measured through the engine's own interface with one and with two
 * decode threads, alternating. HTTP, base64 and the reading of files are outside.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import type { Model } from "../src/engine/engine.ts";
import { Fault } from "../src/engine/fault.ts";
import { locateLibraries } from "../src/engine/library.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { reportsOf } from "./child.ts";
import { openModel } from "./engine.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

/** Asked for: decode + resize + normalise of one 640×360 frame ≤ 1.15 × bare decode + 0.6 ms. */
const FACTOR = 1.15;
const EXTRA_US = 600;
/** Side by side: two of three frames share a core, so 2/3 is the floor; one after the other would be 1. */
const SIDE_BY_SIDE = 0.8;

/** One line of decode_bench's standard output, for one file: medians in microseconds. */
const Line = Type.Object({ file: Type.String(), decode_us: Type.Number(), tensor_us: Type.Number() });

export const decode: Proof = {
  name: "decode",
  question: "What does a 640x360 frame cost above the bare libjpeg-turbo decode, and do three decode side by side?",
  async run(size) {
    const drawn = await sampleFrames(0);
    if (drawn instanceof Problem) return drawn;
    const frames = new Map(drawn.map((jpeg, index) => [`drawn-${index}.jpg`, jpeg]));
    const lines = await runDecodeBench(frames);
    if (lines instanceof Problem) return lines;
    const rows: Figure[] = [];
    for (const line of lines) {
      const limit = Math.round(FACTOR * line.decode_us + EXTRA_US);
      rows.push({ measure: `${line.file} bare decode`, value: line.decode_us, unit: "us" });
      rows.push({ measure: `${line.file} decode + resize + normalise`, value: line.tensor_us, unit: "us", limit });
    }
    const together = await sideBySide(drawn, size === "small" ? 10 : 500);
    if (together instanceof Problem) return together;
    const [one, two] = together;
    rows.push({ measure: "three frames, one decode thread", value: one, unit: "us" });
    rows.push({ measure: "three frames, two decode threads", value: two, unit: "us" });
    rows.push({ measure: "three frames, two threads / one thread", value: two / one, unit: "1", limit: SIDE_BY_SIDE });
    return judged(rows);
  },
};

async function runDecodeBench(frames: ReadonlyMap<string, Uint8Array>): Promise<Static<typeof Line>[] | Problem> {
  const installed = await locateLibraries();
  if (installed instanceof Problem) return installed;
  const folder = await mkdtemp(join(tmpdir(), "tendon-decode-"));
  try {
    for (const [name, jpeg] of frames) await Bun.write(join(folder, name), jpeg);
    const files = [...frames.keys()].map((name) => join(folder, name));
    const build = ["cargo", "run", "--release", "--quiet", "--bin", "decode_bench", "--"];
    const words = [...build, installed.jpeg, ...files];
    return await reportsOf({ name: "decode_bench", words, cwd: join(import.meta.dir, "../native") }, Line);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Medians in microseconds of three frames put at once until all are decoded, with one decode thread and with two, alternating. */
async function sideBySide(frames: readonly Uint8Array[], rounds: number): Promise<readonly [number, number] | Problem> {
  const one = await openModel({ decodeThreads: 1, device: "echo" });
  if (one instanceof Problem) return one;
  const two = await openModel({ decodeThreads: 2, device: "echo" });
  if (two instanceof Problem) {
    await one.close();
    return two;
  }
  const turns = [
    { model: one.model, times: [] as number[] },
    { model: two.model, times: [] as number[] },
  ] as const;
  try {
    // The first rounds fill the decoders' buffers.
    for (let round = -10; round < rounds; round++) {
      for (const { model, times } of turns) {
        const us = await decodeTogether(model, frames);
        if (us instanceof Problem) return us;
        if (round >= 0) times.push(us);
      }
    }
    return [median(turns[0].times), median(turns[1].times)];
  } finally {
    await one.close();
    await two.close();
  }
}

async function decodeTogether(model: Model, frames: readonly Uint8Array[]): Promise<number | Problem> {
  const before = performance.now();
  const put = frames.map((jpeg) => model.framePut(jpeg, 0));
  const ends = await Promise.all(put.map((frame) => (frame instanceof Fault ? frame : frame.decoded())));
  const us = (performance.now() - before) * 1000;
  for (const frame of put) if (!(frame instanceof Fault)) frame.drop();
  const failure = ends.find((end) => end instanceof Fault);
  return failure === undefined ? us : new Problem(failure.message);
}
