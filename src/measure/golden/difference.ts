/** Tensors of golden values: the largest difference of two, and where it is. */
import { isFloat, type TensorFile, valuesOf } from "../../bundle/import/safetensors.ts";

export interface Tensor {
  readonly shape: readonly number[];
  /** Integers up to 2^53 are exact. */
  readonly values: Float32Array | Float64Array | Uint8Array;
}

/** A tensor of floats, of I64, or of bytes; undefined if the file has none of that name. */
export function tensorOf(file: TensorFile, name: string): Tensor | undefined {
  const stored = file.tensors.get(name);
  if (stored === undefined) return undefined;
  const { shape, dtype } = stored;
  if (isFloat(stored)) return { shape, values: valuesOf(stored) };
  const bytes = file.bytes(stored);
  return { shape, values: dtype === "I64" ? Float64Array.from(new BigInt64Array(bytes.buffer), Number) : bytes };
}

/** `at`: its index in each dimension. */
export interface Difference {
  readonly size: number;
  readonly at: readonly number[];
  readonly found: number;
  readonly expected: number;
}

/** The largest difference, of which NaN is the largest; a string says that their shapes differ. */
export function largest(found: Tensor, expected: Tensor): Difference | string {
  if (found.shape.join() !== expected.shape.join()) {
    return `[${found.shape.join(", ")}], expected [${expected.shape.join(", ")}]`;
  }
  let [size, place] = [-1, 0];
  for (let at = 0; at < expected.values.length; at += 1) {
    const off = Math.abs((found.values[at] ?? 0) - (expected.values[at] ?? 0));
    if (off > size || Number.isNaN(off)) [size, place] = [Number.isNaN(off) ? Number.POSITIVE_INFINITY : off, at];
    if (size === Number.POSITIVE_INFINITY) break;
  }
  const values = { found: found.values[place] ?? 0, expected: expected.values[place] ?? 0 };
  return { size: Math.max(size, 0), at: indices(place, expected.shape), ...values };
}

function indices(place: number, shape: readonly number[]): number[] {
  const at: number[] = [];
  let rest = place;
  for (const size of shape.toReversed()) {
    at.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}

/** Part `index` of `count` equal parts along the first dimension, of the given shape. */
export function part({ values }: Tensor, index: number, shape: readonly number[]): Tensor {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return { shape, values: values.subarray(index * size, (index + 1) * size) };
}
