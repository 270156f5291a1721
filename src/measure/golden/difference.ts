/** The largest difference of two tensors, and where it is. */
import type { Tensor } from "../../bundle/safetensors.ts";

/** `at`: its index in each dimension. */
export interface Difference {
  readonly size: number;
  readonly at: readonly number[];
  readonly found: number;
  readonly expected: number;
}

/** Of tensors of one shape; NaN is the largest difference. A string says that their shapes differ. */
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
