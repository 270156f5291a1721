/** Weights of the reference bundles: uniform random numbers from a seed, scaled by fan-in; the same bytes on every machine. */
import { RandomStream } from "../std/random.ts";

export interface Spread {
  /** Inputs that one output sums. */
  readonly fanIn: number;
  /** Standard deviation of an output whose inputs have standard deviation 1; default 1. */
  readonly gain?: number;
  /** Means of equal parts, one after the other; default one part of mean 0. */
  readonly offsets?: readonly number[];
}

/** Standard deviation of biases, and of norm scales around 1: large enough that leaving one out shows in the parity check. */
export const SLIGHT = { fanIn: 100 } as const;

/** How the matrices of a bundle's blocks are kept: `int8` as quantize.ts says. All other weights are float32. */
export type Precision = "f32" | "int8";

export class Weights {
  constructor(
    private readonly seed: number,
    readonly precision: Precision,
  ) {}

  /** Row-major float32 values of the tensor `name`; they depend on seed and name alone. */
  uniform(name: string, dims: readonly number[], { fanIn, gain = 1, offsets = [0] }: Spread): Float32Array {
    const stream = new RandomStream(`${this.seed}/${name}`);
    const values = new Float32Array(dims.reduce((size, dim) => size * dim, 1));
    // A uniform number in [-1, 1) has variance 1/3. Square roots are correctly rounded everywhere.
    const reach = gain * Math.sqrt(3 / fanIn);
    const part = values.length / offsets.length;
    offsets.forEach((offset, number) => {
      for (let index = number * part; index < (number + 1) * part; index += 1) {
        values[index] = offset + reach * stream.signed();
      }
    });
    return values;
  }
}

/** base^(0/(count−1)) … base^((count−1)/(count−1)), without `pow`, whose last bit may differ from one machine to the next. */
export function geometric(base: number, count: number): number[] {
  const ratio = root(base, count - 1);
  const values = [1];
  for (let index = 1; index < count; index += 1) values.push((values[index - 1] ?? 1) * ratio);
  return values;
}

/** The `degree`-th root of `value` > 1, by Newton's method from above. */
function root(value: number, degree: number): number {
  let guess = value;
  for (;;) {
    let power = 1;
    for (let index = 1; index < degree; index += 1) power *= guess;
    const next = ((degree - 1) * guess + value / power) / degree;
    // From above the iteration decreases; the first step that does not is due to rounding.
    if (next >= guess) return guess;
    guess = next;
  }
}
