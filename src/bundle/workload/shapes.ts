/**
 * The shapes of a graph's values, as far as its operators are known: enough of ONNX's shape inference to count work. A value whose shape
 * is not known stays undefined, and so does all that is computed from it.
 */
import { DATA_TYPE, type NodeProto } from "../onnx-schema.ts";

export type NumberType = "f32" | "f16" | "bf16" | "i8" | "u8" | "i64" | "bool" | "other";

export interface Tensor {
  readonly dims: readonly number[];
  readonly type: NumberType;
  /** Known before any run: a weight, or computed from weights alone. Bytes as it is kept: a cast weight is read as it was. */
  readonly keptBytes?: number;
  /** Values of a small i64 vector, which shapes are made of. */
  readonly ints?: readonly number[];
}

type Inputs = readonly (Tensor | undefined)[];
/** Outputs of a node, of which the first is always there. */
type Rule = (node: NodeProto, inputs: Inputs, first: Tensor) => readonly Tensor[] | undefined;

const BYTES: Readonly<Record<NumberType, number>> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  i8: 1,
  u8: 1,
  i64: 8,
  bool: 1,
  other: 4,
};

/** TensorProto.DataType by its name here. */
export function typeOf(code: number): NumberType {
  const known = Object.entries(DATA_TYPE).find(([, number]) => number === code)?.[0];
  return known !== undefined && known in BYTES ? (known as NumberType) : "other";
}

export function countOf(dims: readonly number[]): number {
  return dims.reduce((size, dim) => size * dim, 1);
}

export function bytesOf({ dims, type }: Tensor): number {
  return countOf(dims) * BYTES[type];
}

/** The outputs of a node whose inputs have these shapes; undefined where it, or what it needs of them, is not known. */
export function outputsOf(node: NodeProto, inputs: Inputs): readonly Tensor[] | undefined {
  const rule = RULES[node.opType];
  const [first] = inputs;
  return rule === undefined || first === undefined ? undefined : rule(node, inputs, plainOf(first));
}

/** The shape and type alone: what is computed from a constant is none by itself. */
function plainOf({ dims, type, ints }: Tensor): Tensor {
  return { dims, type, ...(ints && { ints }) };
}

const same: Rule = (_, __, { dims, type }) => [{ dims, type }];
const spread: Rule = (_, inputs, { type }) => {
  const given = inputs.filter((one): one is Tensor => one !== undefined);
  const dims = given.length === inputs.length ? broadcast(given.map((one) => one.dims)) : undefined;
  return dims && [{ dims, type }];
};
const truth: Rule = (node, inputs, first) =>
  spread(node, inputs, first)?.map(({ dims }) => ({ dims, type: "bool" as const }));
const product: Rule = (_, [, right], { dims, type }) => {
  const columns = right?.dims.at(-1);
  if (right === undefined || columns === undefined) return undefined;
  const outer = broadcast([dims.slice(0, -2), right.dims.slice(0, -2)]);
  return outer && [{ dims: [...outer, dims.at(-2) ?? 1, columns], type }];
};

const RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(
    ["Cos", "CumSum", "Erf", "Exp", "Gelu", "Identity", "LayerNormalization", "Neg", "QuickGelu", "RMSNormalization"]
      .concat(["Relu", "RotaryEmbedding", "Sigmoid", "SimplifiedLayerNormalization", "Sin", "Softmax", "Sqrt", "Tanh"])
      .map((name) => [name, same]),
  ),
  ...Object.fromEntries(["Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"].map((name) => [name, spread])),
  ...Object.fromEntries(
    ["And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or"].map((name) => [name, truth]),
  ),
  Attention: attention,
  GroupQueryAttention: attention,
  MultiHeadAttention: attention,
  Cast: (node, _, { dims, ints }) => [{ dims, type: typeOf(intOf(node, "to", 1)), ...(ints && { ints }) }],
  Concat: concat,
  Conv: conv,
  DynamicQuantizeMatMul: product,
  Expand: (_, [, shape], { dims, type }) => {
    const whole = shape?.ints && broadcast([dims, shape.ints]);
    return whole && [{ dims: whole, type }];
  },
  Gather: (node, [, indices], { dims, type }) => {
    const at = axisOf(intOf(node, "axis", 0), dims);
    return indices && [{ dims: [...dims.slice(0, at), ...indices.dims, ...dims.slice(at + 1)], type }];
  },
  MatMul: product,
  MatMulInteger: product,
  Pad: (_, [, pads], { dims, type }) => {
    const by = pads?.ints;
    return by && [{ dims: dims.map((dim, at) => dim + (by[at] ?? 0) + (by[at + dims.length] ?? 0)), type }];
  },
  ReduceSum: (node, [, axes], { dims, type }) => {
    const gone = (axes?.ints ?? dims.map((_, at) => at)).map((axis) => axisOf(axis, dims));
    const keep = intOf(node, "keepdims", 1) === 1;
    return [{ dims: dims.flatMap((dim, at) => (gone.includes(at) ? (keep ? [1] : []) : [dim])), type }];
  },
  Reshape: (_, [, shape], { dims, type }) => shape?.ints && [{ dims: reshaped(dims, shape.ints), type }],
  Shape: (_, __, { dims }) => [{ dims: [dims.length], type: "i64", ints: dims }],
  Slice: slice,
  Split: split,
  Transpose: (node, _, { dims, type }) => {
    const perm = intsOf(node, "perm") ?? dims.map((_, at) => dims.length - 1 - at);
    return [{ dims: perm.map((at) => dims[at] ?? 1), type }];
  },
  Unsqueeze: (_, [, axes], { dims, type }) => {
    const whole = axes?.ints && unsqueezed(dims, axes.ints);
    return whole && [{ dims: whole, type }];
  },
  Squeeze: (_, [, axes], { dims, type }) => {
    const gone = axes?.ints?.map((axis) => axisOf(axis, dims));
    return [{ dims: dims.filter((dim, at) => (gone ? !gone.includes(at) : dim !== 1)), type }];
  },
  Where: (_, inputs) => {
    const [, then] = inputs;
    const dims = inputs.every((one) => one !== undefined) ? broadcast(inputs.map((one) => one.dims)) : undefined;
    return dims && then && [{ dims, type: then.type }];
  },
};

/** Queries [B, H, N, D] or [B, N, H · D]: what comes out has their shape. */
function attention(_: NodeProto, inputs: Inputs, { dims, type }: Tensor): readonly Tensor[] {
  const later = inputs.slice(1, 3).map((one) => ({ dims: one?.dims ?? [], type }));
  return [{ dims, type }, ...later];
}

function concat(node: NodeProto, inputs: Inputs, { dims, type }: Tensor): readonly Tensor[] | undefined {
  const given = inputs.filter((one): one is Tensor => one !== undefined);
  if (given.length < inputs.length) return undefined;
  const at = axisOf(intOf(node, "axis", 0), dims);
  const whole = given.reduce((sum, one) => sum + (one.dims[at] ?? 0), 0);
  const ints = given.every((one) => one.ints) ? given.flatMap((one) => one.ints ?? []) : undefined;
  return [{ dims: dims.with(at, whole), type, ...(ints && { ints }) }];
}

/** Images [B, C, H, W] by weights [M, C, …], without padding. */
function conv(node: NodeProto, [, weight]: Inputs, { dims, type }: Tensor): readonly Tensor[] | undefined {
  if (weight === undefined) return undefined;
  const kernel = weight.dims.slice(2);
  const strides = intsOf(node, "strides") ?? kernel.map(() => 1);
  const pads = intsOf(node, "pads") ?? [];
  const space = kernel.map((size, at) => {
    const room = (dims[at + 2] ?? 0) + (pads[at] ?? 0) + (pads[at + kernel.length] ?? 0);
    return Math.floor((room - size) / (strides[at] ?? 1)) + 1;
  });
  return [{ dims: [dims[0] ?? 1, weight.dims[0] ?? 1, ...space], type }];
}

function slice(_: NodeProto, inputs: Inputs, { dims, type }: Tensor): readonly Tensor[] | undefined {
  const [starts, ends, axes] = inputs.slice(1, 4).map((one) => one?.ints);
  if (starts === undefined || ends === undefined) return undefined;
  const cut = [...dims];
  starts.forEach((start, index) => {
    const at = axisOf(axes?.[index] ?? index, dims);
    const size = dims[at] ?? 0;
    const place = (value: number) => Math.min(size, Math.max(0, value < 0 ? value + size : value));
    cut[at] = Math.max(0, place(ends[index] ?? size) - place(start));
  });
  return [{ dims: cut, type }];
}

function split(node: NodeProto, [, sizes]: Inputs, { dims, type }: Tensor): readonly Tensor[] {
  const at = axisOf(intOf(node, "axis", 0), dims);
  const equal = node.output.map(() => (dims[at] ?? 0) / node.output.length);
  return (sizes?.ints ?? equal).map((size) => ({ dims: dims.with(at, size), type }));
}

function reshaped(dims: readonly number[], shape: readonly number[]): number[] {
  const kept = shape.map((size, at) => (size === 0 ? (dims[at] ?? 1) : size));
  const known = kept.reduce((size, dim) => (dim === -1 ? size : size * dim), 1);
  return kept.map((size) => (size === -1 ? countOf(dims) / known : size));
}

function unsqueezed(dims: readonly number[], axes: readonly number[]): number[] {
  const rank = dims.length + axes.length;
  const added = new Set(axes.map((axis) => (axis < 0 ? axis + rank : axis)));
  const rest = [...dims];
  return Array.from({ length: rank }, (_, at) => (added.has(at) ? 1 : (rest.shift() ?? 1)));
}

/** undefined for shapes that do not fit. */
function broadcast(shapes: readonly (readonly number[])[]): number[] | undefined {
  const rank = Math.max(0, ...shapes.map((dims) => dims.length));
  const whole = Array.from({ length: rank }, (_, at) => {
    const here = shapes.map((dims) => dims[at - rank + dims.length] ?? 1).filter((dim) => dim !== 1);
    return here.every((dim) => dim === here[0]) ? (here[0] ?? 1) : Number.NaN;
  });
  return whole.some(Number.isNaN) ? undefined : whole;
}

function axisOf(axis: number, dims: readonly number[]): number {
  return axis < 0 ? axis + dims.length : axis;
}

function intOf({ attribute }: NodeProto, name: string, usual: number): number {
  const found = attribute?.find((one) => one.name === name)?.i;
  return found === undefined ? usual : Number(found);
}

function intsOf({ attribute }: NodeProto, name: string): number[] | undefined {
  return attribute?.find((one) => one.name === name)?.ints?.map(Number);
}
