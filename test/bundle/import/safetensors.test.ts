/** Safetensors files and checkpoints of one file or shards: what is read, and what is refused before anything is read by it. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Checkpoint } from "../../../src/bundle/import/checkpoint.ts";
import { hasFiner, TensorFile, valuesOf } from "../../../src/bundle/import/safetensors.ts";
import { present } from "../../../src/std/assert.ts";
import { sha256 } from "../../../src/std/file-digest.ts";
import { Problem } from "../../../src/std/problem.ts";
import { emptyDir } from "../built.ts";
import { f32, writeRaw, writeTensors } from "./tensor-files.ts";

const dir = await emptyDir();
const words = (opened: unknown) => (opened instanceof Problem ? opened.message : "no problem");

describe("one file", () => {
  test("values of the three types, whole and from a place on", async () => {
    const numbers = [1, -2.5, 0, 65504, 2 ** -14, -0.333251953125];
    const halves = new Uint8Array(new Float16Array(numbers).buffer);
    const brain = new Uint8Array(Uint16Array.of(0x3f80, 0xc020, 0, 0x4780).buffer);
    const path = join(dir, "types.safetensors");
    await writeTensors(path, {
      single: f32([2, 3], (at) => at / 3),
      half: { shape: [6], dtype: "F16", bytes: halves },
      brain: { shape: [4], dtype: "BF16", bytes: brain },
      ids: { shape: [1], dtype: "I64", bytes: new Uint8Array(8) },
    });
    const file = TensorFile.open(path);
    if (file instanceof Problem) throw new Error(file.message);
    const all = (name: string) => [...valuesOf(present(file.tensors.get(name), name))];
    expect(all("single")).toEqual(Array.from({ length: 6 }, (_, at) => Math.fround(at / 3)));
    expect(all("half")).toEqual(numbers);
    expect(all("brain")).toEqual([1, -2.5, 0, 65536]);
    const rest = new Float32Array(2);
    file.floats(present(file.tensors.get("half"), "half"), 1, rest);
    expect([...rest]).toEqual([-2.5, 0]);
    const isFiner = (name: string) => {
      const stored = present(file.tensors.get(name), name);
      return hasFiner(stored, file.bytes(stored));
    };
    expect(["single", "half", "brain"].map(isFiner)).toEqual([true, true, false]);
    file.close();
  });

  test("a header that lies is refused, with the tensor and what was expected", async () => {
    const one = (more: object) => JSON.stringify({ w: { dtype: "F32", shape: [2], data_offsets: [0, 8], ...more } });
    const two = (begin: number) =>
      JSON.stringify({
        a: { dtype: "F32", shape: [2], data_offsets: [0, 8] },
        b: { dtype: "F32", shape: [1], data_offsets: [begin, begin + 4] },
      });
    const cases: [header: string, bytes: number, expected: string, length?: number][] = [
      [one({}), 7, "expected "],
      [one({}), 9, "expected "],
      [one({}), 8, "its header has 18446744073709551615 bytes", -1],
      [one({}), 8, "its header has 4000000000 bytes", 4e9],
      ["{", 0, "its header is not JSON"],
      ["[]", 0, "its header is no object"],
      [JSON.stringify({ w: null }), 0, "w: dtype undefined"],
      [one({ dtype: "toString" }), 8, 'w: dtype "toString"'],
      [one({ shape: [-2] }), 8, "w: shape [-2]"],
      [one({ shape: [1.5] }), 8, "w: shape [1.5]"],
      [one({ shape: [3] }), 8, "w: 8 bytes, expected 12 for [3] F32"],
      [one({ shape: [2 ** 52, 2 ** 52] }), 8, "w: 8 bytes, expected "],
      [one({ data_offsets: [8, 0] }), 8, "w: data_offsets [8,0]"],
      [one({ data_offsets: [0, 8, 16] }), 8, "w: data_offsets [0,8,16]"],
      [two(4), 12, "b begins at"],
      [two(12), 16, "b begins at"],
    ];
    for (const [header, bytes, expected, length] of cases) {
      const path = join(dir, "lie.safetensors");
      const said = length === -1 ? 2n ** 64n - 1n : BigInt(length ?? header.length);
      await writeRaw(path, header, new Uint8Array(bytes), said);
      expect(words(TensorFile.open(path))).toContain(expected);
    }
    await writeFile(join(dir, "short.safetensors"), "seven b");
    expect(words(TensorFile.open(join(dir, "short.safetensors")))).toContain("it has 7 bytes, expected at least 8");
    expect(words(TensorFile.open(join(dir, "none.safetensors")))).toContain("no such file or folder");
  });

  test("a folder and a pipe are refused, and leave nothing open", async () => {
    const pipe = join(dir, "pipe.safetensors");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (const path of [dir, pipe, dir, pipe]) expect(words(TensorFile.open(path))).toContain("expected a file");
    expect(open()).toBe(before);
  });
});

describe("a checkpoint", () => {
  test("shards are read by the index; every file has its digest, and what is not finite is named", async () => {
    const folder = await emptyDir();
    await writeTensors(join(folder, "one.safetensors"), { a: f32([2], () => 1), b: f32([1], () => Number.NaN) });
    await writeTensors(join(folder, "two.safetensors"), {
      c: { shape: [2], dtype: "BF16", bytes: new Uint8Array(Uint16Array.of(0x3f80, 0xff80).buffer) },
      d: { shape: [2], dtype: "F16", bytes: new Uint8Array(Uint16Array.of(0x7bff, 0x7c00).buffer) },
      e: { shape: [1], dtype: "I64", bytes: new Uint8Array(8).fill(0xff) },
    });
    const map = { a: "one", b: "one", c: "two", d: "two", e: "two" };
    const index = (weights: object) => writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify(weights));
    await index({
      weight_map: Object.fromEntries(Object.entries(map).map(([key, file]) => [key, `${file}.safetensors`])),
    });
    const checkpoint = await Checkpoint.open(folder);
    if (checkpoint instanceof Problem) throw new Error(checkpoint.message);
    let moved = 0;
    const { files, notFinite } = await checkpoint.scan((bytes) => {
      moved += bytes;
    });
    expect([...notFinite]).toEqual(["b", "c", "d"]);
    expect(moved).toBe(checkpoint.bytes);
    for (const { path, sha256: digest } of files) {
      expect(digest).toBe(sha256(await Bun.file(join(folder, path)).bytes()));
    }
    checkpoint.close();
    for (const [place, expected] of [
      ["../one.safetensors", "expected a file beside it"],
      ["..", "expected a file beside it"],
      [".", "expected a file beside it"],
      ["", "expected a file beside it"],
      ["one.safetensors", "one.safetensors has b, which"],
      ["two.safetensors", "has no a, which"],
      ["three.safetensors", "no such file or folder"],
    ] as const) {
      await index({ weight_map: { a: place } });
      expect(words(await Checkpoint.open(folder))).toContain(expected);
    }
    await writeTensors(join(folder, "two.safetensors"), { a: f32([2], () => 1), c: f32([2], () => 1) });
    const places = { a: "one.safetensors", b: "one.safetensors", c: "two.safetensors" };
    await index({ weight_map: places });
    expect(words(await Checkpoint.open(folder))).toContain("two.safetensors has a, which");
    await writeTensors(join(folder, "model.safetensors"), {});
    expect(words(await Checkpoint.open(folder))).toContain(
      "has both model.safetensors and model.safetensors.index.json",
    );
  });
});
