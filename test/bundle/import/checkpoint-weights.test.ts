/** Tensors of a graph that are made of a checkpoint's: transposed, cut, side by side, one more; and what does not fit. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { CheckpointWeights, type Part } from "../../../src/bundle/import/checkpoint-weights.ts";
import { TensorFile } from "../../../src/bundle/import/safetensors.ts";
import { allOf } from "../../../src/bundle/values.ts";
import { DEFAULT_BUILD } from "../../../src/bundle/weights.ts";
import { Problem } from "../../../src/std/problem.ts";
import { emptyDir } from "../built.ts";
import { f32, writeTensors } from "./tensor-files.ts";

const path = join(await emptyDir(), "w.safetensors");
await writeTensors(path, {
  /** More rows than a block of the transposed matrix has. */
  wide: f32([5, 37], (at) => at),
  other: f32([2, 37], (at) => -at),
  vector: f32([6], (at) => at / 10),
  ids: { shape: [6], dtype: "I64", bytes: new Uint8Array(48) },
});
const file = TensorFile.open(path);
if (file instanceof Problem) throw new Error(file.message);

function source(table: Readonly<Record<string, readonly Part[]>>) {
  return new CheckpointWeights(
    DEFAULT_BUILD,
    file instanceof Problem ? new Map() : file.tensors,
    new Map(Object.entries(table)),
  );
}

const transposed = { transpose: true } as const;

test("a transposed matrix, and several side by side", () => {
  const weights = source({
    one: [{ tensor: "wide", ...transposed }],
    cut: [{ tensor: "wide", ...transposed, rows: [1, 3, 5] }],
    both: [
      { tensor: "wide", ...transposed },
      { tensor: "other", ...transposed, rows: [0, 2, 2] },
    ],
  });
  const column = (from: number, rows: number) => (at: number) => from + (at % rows) * 37 + Math.floor(at / rows);
  expect([...weights.whole("one", [37, 5])]).toEqual(Array.from({ length: 185 }, (_, at) => column(0, 5)(at)));
  expect([...weights.whole("cut", [37, 2])]).toEqual(Array.from({ length: 74 }, (_, at) => column(37, 2)(at)));
  const joined = weights.joined(
    [
      { name: "one", to: 5, gain: 1 },
      { name: "cut", to: 2, gain: 1 },
    ],
    37,
    "f32",
  );
  const values = new Float32Array(allOf(joined).buffer);
  expect([...values.subarray(7, 14)]).toEqual([1, 38, 75, 112, 149, 38, 75]);
  expect(weights.faults).toEqual([]);
});

test("values plus a number, rounded to float32; parts of a vector after one another", () => {
  const weights = source({
    more: [{ tensor: "vector", plus: 1 }],
    parts: [
      { tensor: "vector", rows: [4, 6, 6] },
      { tensor: "vector", rows: [0, 1, 6], plus: 1 },
    ],
  });
  const expected = Array.from({ length: 6 }, (_, at) => Math.fround(Math.fround(at / 10) + 1));
  expect([...weights.whole("more", [6])]).toEqual(expected);
  expect([...weights.whole("parts", [3])]).toEqual([0.4, 0.5, 1].map(Math.fround));
  expect([...weights.used]).toEqual(["vector"]);
});

test("everything that does not fit is named", () => {
  const weights = source({
    gone: [{ tensor: "gone" }],
    shape: [{ tensor: "wide", ...transposed }],
    type: [{ tensor: "ids" }],
    rows: [{ tensor: "vector", rows: [0, 2, 4] }],
  });
  weights.whole("gone", [6]);
  expect([...weights.whole("shape", [5, 37])].every((value) => value === 0)).toBe(true);
  weights.whole("type", [6]);
  weights.whole("rows", [2]);
  expect(weights.faults).toEqual([
    "gone is missing, expected [6]",
    "wide is [5,37], expected [37,5]",
    "ids is I64, expected F32, BF16 or F16",
    "vector is [6], expected [4]",
  ]);
});
