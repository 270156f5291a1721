/** What a graph asks for its weights, whether they are random numbers (random-weights.ts) or come from a checkpoint (import/checkpoint-weights.ts). */
import type { FloatType, Values } from "./values.ts";

/** How random values of a tensor are spread. A checkpoint has its own values and does not look at it. */
export interface Spread {
  /** Inputs that one output sums. */
  readonly fanIn: number;
  /** Standard deviation of an output whose inputs have standard deviation 1; default 1. */
  readonly gain?: number;
  /** Means of equal parts, one after the other; default one part of mean 0. */
  readonly offsets?: readonly number[];
  /** The last matrix of a flow, called `…_out.weight`: 1 for one whose time goes up, −1 for one whose time goes down. */
  readonly towards?: 1 | -1;
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

/** What a build for GPUs computes in. */
export type Half = "f16" | "bf16";
export const HALVES: readonly Half[] = ["f16", "bf16"];

/** What the CPU computes best. */
export const DEFAULT_BUILD: Build = { precision: "f32", compute: "f32", frames: "f32" };
/** What few bytes reach a GPU and move there with. */
export const HALF_BUILD = { precision: "f32", frames: "u8" } as const;

/** A matrix `<name>.weight` [inputs, `to`], whose outputs have a standard deviation of `gain` where it is random. */
export interface Matrix {
  readonly name: string;
  readonly to: number;
  readonly gain: number;
}

export interface Weights {
  readonly build: Build;
  /** Row-major float32 values of the tensor `name`, all of them in memory. */
  whole(name: string, dims: readonly number[], spread: Spread): Float32Array;
  /** The same, made when they are written. */
  later(name: string, dims: readonly number[], spread: Spread, kept: FloatType): Values;
  /** Matrices [`from`, `to`] side by side, each with the values of the tensor `name`, made when they are written. */
  joined(matrices: readonly Matrix[], from: number, kept: FloatType): Values;
}

/** The number of values of a tensor. */
export function sizeOf(dims: readonly number[]): number {
  return dims.reduce((size, dim) => size * dim, 1);
}
