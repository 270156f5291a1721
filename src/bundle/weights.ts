/** Weights of the reference bundles: uniform random numbers from a seed, scaled by fan-in; the same bytes on every machine. */
import { RandomStream } from "../std/random.ts";
import { type Columns, type FloatType, type Source, sideBySide, streamed, type Values } from "./values.ts";

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

/**
 * How the matrices of a bundle's blocks are kept: `int8` as smaller-weights.ts says, `bf16` rounded to bfloat16 like the table of
 * tokens. All other weights are float32.
 */
export type Precision = "f32" | "int8" | "bf16";
export const PRECISIONS: readonly Precision[] = ["f32", "int8", "bf16"];

/** What a bundle is built for: `DEFAULT_BUILD`, or a GPU. */
export interface Build {
  /** How a graph that computes in f32 keeps weights; another one has `f32` here, and weights of the type that it computes in. */
  readonly precision: Precision;
  /** The type that a graph computes in; what needs float32 keeps it (layers.ts). */
  readonly compute: FloatType;
  /** Frames come as pixels and are normalised in the graph, or as the normalised numbers themselves. */
  readonly frames: "f32" | "u8";
}

/** What the CPU computes best. */
export const DEFAULT_BUILD: Build = { precision: "f32", compute: "f32", frames: "f32" };
/** What few bytes reach a GPU and move there with. */
export const HALF_BUILD = { precision: "f32", frames: "u8" } as const;

/** A matrix `<name>.weight` [inputs, `to`], whose outputs have a standard deviation of `gain`. */
export interface Matrix {
  readonly name: string;
  readonly to: number;
  readonly gain: number;
}

export class Weights {
  constructor(
    private readonly seed: number,
    readonly build: Build,
  ) {}

  /** Row-major float32 values of the tensor `name`; they depend on seed and name alone. */
  uniform(name: string, dims: readonly number[], spread: Spread): Float32Array {
    const values = new Float32Array(sizeOf(dims));
    this.begin(name, values.length, spread)()(values);
    return values;
  }

  /** The same, made when they are written. */
  later(name: string, dims: readonly number[], spread: Spread, kept: FloatType): Values {
    const count = sizeOf(dims);
    return streamed(`${name} ${dims} ${JSON.stringify(spread)}`, count, kept, this.begin(name, count, spread));
  }

  /**
   * Matrices [`from`, `to`] side by side, each with the values of the tensor `name`, made when they are written.
   */
  joined(matrices: readonly Matrix[], from: number, kept: FloatType): Values {
    const parts = matrices.map(({ name, to, gain }): Columns => {
      return { columns: to, begin: this.begin(name, from * to, { fanIn: from, gain }) };
    });
    const key = matrices.map(({ name, to, gain }) => `${name} ${from},${to} ${gain}`).join(" | ");
    return sideBySide(key, from, kept, parts);
  }

  private begin(name: string, count: number, { fanIn, gain = 1, offsets = [0] }: Spread): () => Source {
    // A uniform number in [-1, 1) has variance 1/3. Square roots are correctly rounded everywhere.
    const reach = gain * Math.sqrt(3 / fanIn);
    const part = count / offsets.length;
    return () => {
      const stream = new RandomStream(`${this.seed}/${name}`);
      let done = 0;
      return (target) => {
        for (let at = 0; at < target.length; ) {
          const number = Math.floor(done / part);
          const count = Math.min(target.length - at, (number + 1) * part - done);
          stream.spread(target.subarray(at, at + count), offsets[number] ?? 0, reach);
          at += count;
          done += count;
        }
      };
    };
  }
}

function sizeOf(dims: readonly number[]): number {
  return dims.reduce((size, dim) => size * dim, 1);
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
    // The iteration decreases from above; the first step that does not is due to rounding.
    if (next >= guess) return guess;
    guess = next;
  }
}
