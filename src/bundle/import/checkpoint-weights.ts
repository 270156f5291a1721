/**
 * The weights of a graph from a checkpoint: each tensor of the graph is made of parts of the checkpoint's, by a table. What does not fit is
 * noted, so that all of it can be said at once; its values are zeros then. One tensor is in memory at a time, and only where it is transposed.
 */
import { assert, present } from "../../std/assert.ts";
import { type FloatType, type Source, sideBySide, streamed, type Values } from "../values.ts";
import { type Build, type Matrix, type Spread, sizeOf, type Weights } from "../weights.ts";
import { isFloat, type Stored, valuesOf } from "./safetensors.ts";

/** A part of a tensor of a graph. Parts stand side by side along its last axis; a tensor of more than two axes has one. */
export interface Part {
  readonly tensor: string;
  /** The checkpoint has [outputs, inputs], as PyTorch's linear layers; the graph has [inputs, outputs]. */
  readonly transpose?: true;
  /** Only the rows of the checkpoint's tensor from the first number to before the second, of as many as the third. */
  readonly rows?: readonly [first: number, end: number, of: number];
  /** Each value plus this. */
  readonly plus?: number;
  /** The batch norm behind a convolution, by the begin of its tensors' names: this part is the convolution's weight, or its bias. */
  readonly batchNorm?: string;
}

/** Names of the tensors that a part is made of. */
export function tensorsOf({ tensor, batchNorm }: Part): readonly string[] {
  return batchNorm === undefined ? [tensor] : [tensor, ...NORM_TENSORS.map((name) => `${batchNorm}.${name}`)];
}

/** Name of a graph's tensor → its parts. */
export type WeightTable = ReadonlyMap<string, readonly Part[]>;

/** Rows of a transposed matrix that are made at a time: neighbours in the checkpoint, so that each line of memory is read once. */
const BLOCK_ROWS = 16;

export class CheckpointWeights implements Weights {
  /** Tensors of the checkpoint that a graph reads. */
  readonly used = new Set<string>();
  /** Those of which it keeps the nearest bfloat16 numbers. */
  readonly halved = new Set<string>();
  /** Tensors of which a value that was made is not finite in the type in which it is kept, a line for each. */
  readonly notFinite = new Set<string>();
  private readonly wrong = new Set<string>();

  /** `tensors`: the checkpoint's, by the names that the table has for them. */
  constructor(
    readonly build: Build,
    private readonly tensors: ReadonlyMap<string, Stored>,
    private readonly table: WeightTable,
  ) {}

  /** What was missing or did not fit of all that was asked for until now, a line for each. */
  get faults(): readonly string[] {
    return [...this.wrong];
  }

  whole(name: string, dims: readonly number[]): Float32Array {
    const values = new Float32Array(sizeOf(dims));
    const made = this.later(name, dims, {} as Spread, "f32");
    let at = 0;
    for (const piece of made.pieces()) {
      values.set(new Float32Array(piece.buffer, piece.byteOffset, piece.length / 4), at);
      at += piece.length / 4;
    }
    return values;
  }

  later(name: string, dims: readonly number[], _spread: Spread, kept: FloatType): Values {
    const parts = this.partsOf(name, dims, kept);
    const key = `${name} ${dims}`;
    const [only] = parts;
    if (parts.length === 1 && only) return streamed(key, sizeOf(dims), kept, only.begin);
    return sideBySide(key, dims.length === 1 ? 1 : (dims[0] ?? 1), kept, parts);
  }

  joined(matrices: readonly Matrix[], from: number, kept: FloatType): Values {
    const parts = matrices.flatMap(({ name, to }) => this.partsOf(name, [from, to], kept));
    return sideBySide(matrices.map(({ name }) => name).join(" | "), from, kept, parts);
  }

  private partsOf(name: string, dims: readonly number[], kept: FloatType) {
    const parts = present(this.table.get(name), `the parts of ${name} in a checkpoint`);
    const columns = dims.at(-1) ?? 1;
    return parts.map((part) => {
      if (kept === "bf16") this.halved.add(part.tensor);
      const share = part.rows && dims.length < 3 ? part.rows[1] - part.rows[0] : columns / parts.length;
      const begin = this.sourceOf(part, [...dims.slice(0, -1), share]);
      return { columns: share, begin: () => this.watched(begin(), part, kept) };
    });
  }

  /** Notes what is not finite when it is kept. The values of the files are judged where all of them are read. */
  private watched(source: Source, { tensor, batchNorm }: Part, kept: FloatType): Source {
    if (kept === "f32" && batchNorm === undefined) return source;
    const name = this.tensors.get(tensor)?.name ?? tensor;
    const end = ENDS[kept];
    return (target) => {
      source(target);
      // A loop: a call for each of thousands of millions of values takes minutes.
      for (let at = 0; at < target.length; at += 1) {
        if (Math.abs(target[at] ?? 0) < end) continue;
        this.notFinite.add(`${name}${batchNorm ? ` with ${batchNorm}` : ""} has a value that is not finite as ${kept}`);
        return;
      }
    };
  }

  /** The values of a part [...rows, columns] of a graph's tensor, in order. */
  private sourceOf(part: Part, dims: readonly number[]): () => Source {
    const { tensor, transpose, rows } = part;
    const own = transpose ? dims.toReversed() : dims;
    const expected = rows ? [rows[2], ...own.slice(1)] : own;
    const stored = this.tensors.get(tensor);
    if (stored) this.used.add(tensor);
    const fault = faultOf(tensor, stored, expected);
    if (stored === undefined || fault !== undefined) {
      if (fault !== undefined) this.wrong.add(fault);
      return () => (target) => target.fill(0);
    }
    const first = (rows?.[0] ?? 0) * sizeOf(own.slice(1));
    if (part.batchNorm !== undefined) return this.normed(part.batchNorm, stored, dims);
    if (!transpose) return () => added(inOrder(stored, first), part);
    assert(own.length === 2, `${tensor} is a matrix`);
    const [outputs = 1, inputs = 1] = own;
    return () => added(transposed(stored, first, outputs, inputs), part);
  }

  /** A convolution [channels, …] whose values are scaled by the batch norm, or the norm's bias [channels] as that of the convolution. */
  private normed(batchNorm: string, stored: Stored, dims: readonly number[]): () => Source {
    const [channels = 1, ...rest] = dims;
    const vectors = NORM_TENSORS.map((name) => {
      const vector = this.tensors.get(`${batchNorm}.${name}`);
      const fault = faultOf(`${batchNorm}.${name}`, vector, [channels]);
      if (fault !== undefined) this.wrong.add(fault);
      this.used.add(`${batchNorm}.${name}`);
      return vector && fault === undefined ? valuesOf(vector) : new Float32Array(channels);
    });
    const [weight, mean, variance] = vectors;
    // torchvision's `FrozenBatchNorm2d`: weight / √(variance + ε), and bias − mean · that.
    const scale = (channel: number) => (weight?.[channel] ?? 0) / Math.sqrt((variance?.[channel] ?? 0) + NORM_EPSILON);
    const made = (value: number, channel: number) =>
      rest.length === 0 ? value - (mean?.[channel] ?? 0) * scale(channel) : value * scale(channel);
    return () => ofChannels(inOrder(stored, 0), sizeOf(rest), made);
  }
}

/** The least value of each type that is rounded to infinity: half a place above its largest. */
const ENDS: Readonly<Record<FloatType, number>> = {
  f32: Number.POSITIVE_INFINITY,
  f16: 65_520,
  bf16: (2 - 2 ** -8) * 2 ** 127,
};

/** Tensors of a batch norm beside its bias. */
const NORM_TENSORS = ["weight", "running_mean", "running_var"] as const;
/** What PyTorch adds to a variance. */
const NORM_EPSILON = 1e-5;

/** `each` values of a channel, then those of the next one. */
function ofChannels(source: Source, each: number, made: (value: number, channel: number) => number): Source {
  let done = 0;
  return (target) => {
    source(target);
    for (let at = 0; at < target.length; at += 1) target[at] = made(target[at] ?? 0, Math.floor((done + at) / each));
    done += target.length;
  };
}

function faultOf(name: string, stored: Stored | undefined, expected: readonly number[]): string | undefined {
  if (stored === undefined) return `${name} is missing, expected [${expected}]`;
  if (!isFloat(stored)) return `${name} is ${stored.dtype}, expected F32, BF16 or F16`;
  if (Bun.deepEquals([...stored.shape], [...expected])) return undefined;
  return `${name} is [${stored.shape}], expected [${expected}]`;
}

function inOrder(stored: Stored, first: number): Source {
  let next = first;
  return (target) => {
    stored.file.floats(stored, next, target);
    next += target.length;
  };
}

/** The matrix [outputs, inputs] that begins at the value `first`, as [inputs, outputs]. */
function transposed(stored: Stored, first: number, outputs: number, inputs: number): Source {
  const matrix = new Float32Array(outputs * inputs);
  stored.file.floats(stored, first, matrix);
  const block = new Float32Array(BLOCK_ROWS * outputs);
  let ready = block.subarray(0, 0);
  let row = 0;
  const nextBlock = () => {
    const count = Math.min(BLOCK_ROWS, inputs - row);
    for (let output = 0; output < outputs; output += 1) {
      for (let index = 0; index < count; index += 1)
        block[index * outputs + output] = matrix[output * inputs + row + index] ?? 0;
    }
    row += count;
    return block.subarray(0, count * outputs);
  };
  return (target) => {
    for (let at = 0; at < target.length; ) {
      if (ready.length === 0) ready = nextBlock();
      const piece = ready.subarray(0, target.length - at);
      target.set(piece, at);
      ready = ready.subarray(piece.length);
      at += piece.length;
    }
  };
}

/** Sums are rounded to float32, as PyTorch does. */
function added(source: Source, { plus }: Part): Source {
  if (plus === undefined) return source;
  return (target) => {
    source(target);
    for (let at = 0; at < target.length; at += 1) target[at] = (target[at] ?? 0) + plus;
  };
}
