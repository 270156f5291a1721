/**
 * What one run of a graph computes and moves at least, counted from its nodes: what a device's own figures are compared with.
 *
 * FLOPs are those of products: matrices, convolutions, attention; two for each multiply-add. Sums, norms and softmax are not counted. Bytes
 * are the weights that the run reads, each once, as they are kept, and the graph's inputs and outputs. What is computed from weights
 * alone is computed when the graph is loaded and counts as a weight; what lies between the nodes need not leave the device's caches.
 */
import { assert } from "../../std/assert.ts";
import {
  EXTERNAL,
  type ExternalTensorProto,
  type ModelProto,
  type NodeProto,
  type TensorProto,
} from "../onnx-schema.ts";
import { bytesOf, countOf, type NumberType, outputsOf, type Tensor, typeOf } from "./shapes.ts";

export interface Work {
  /** Per type of the numbers that are multiplied. */
  readonly flops: Readonly<Partial<Record<NumberType, number>>>;
  readonly weightBytes: number;
  /** The bytes of inputs and outputs. */
  readonly portBytes: number;
  /** Operators whose work is not known, each once: the figures above are too low by it. */
  readonly unknown: readonly string[];
}

type Model = ModelProto<TensorProto | ExternalTensorProto>;

/** The work of a run with these sizes of the symbolic dimensions, such as `batch`. */
export function graphWork({ graph }: Model, sizes: Readonly<Record<string, number>>): Work {
  const values = new Map<string, Tensor>();
  for (const tensor of graph.initializer ?? []) values.set(tensor.name, weightOf(tensor));
  const shapeOf = ({ type }: Model["graph"]["input"][number]): Tensor => {
    const { elemType, shape } = type.tensorType;
    const dims = shape?.dim?.map((dim) => ("dimParam" in dim && dim.dimParam ? size(dim.dimParam) : Number(told(dim))));
    return { dims: dims ?? [], type: typeOf(elemType) };
  };
  const size = (name: string): number => {
    const given = sizes[name];
    assert(given !== undefined, `the size of the dimension ${name} is given`);
    return given;
  };
  for (const input of graph.input) values.set(input.name, shapeOf(input));

  const flops: Partial<Record<NumberType, number>> = {};
  const [read, unknown] = [new Map<string, number>(), new Set<string>()];
  for (const node of graph.node) {
    const inputs = node.input.map((name) => values.get(name));
    const made = outputsOf(node, inputs);
    const known = node.input.filter((name) => name !== "").every((name) => values.get(name)?.keptBytes !== undefined);
    const folded = known && node.input.length > 0;
    node.output.forEach((name, at) => {
      const tensor = made?.[at];
      // A weight that is cast is read as it is kept: that is part of the product.
      const kept = node.opType === "Cast" ? inputs[0]?.keptBytes : tensor && bytesOf(tensor);
      if (tensor) values.set(name, folded && kept !== undefined ? { ...tensor, keptBytes: kept } : tensor);
    });
    if (folded) continue;
    if (made === undefined) unknown.add(node.opType);
    const work = made && multiplied(node, inputs, made);
    if (work) flops[work.type] = (flops[work.type] ?? 0) + work.flops;
    node.input.forEach((name, at) => {
      const kept = inputs[at]?.keptBytes;
      if (kept === undefined) return;
      // Rows of a table, not the table.
      const row = node.opType === "Gather" && at === 0 && made?.[0] ? bytesOf(made[0]) : kept;
      read.set(name, Math.min(kept, (node.opType === "Gather" ? (read.get(name) ?? 0) : 0) + row));
    });
  }
  const ports = [...graph.input, ...graph.output].map((port) => bytesOf(shapeOf(port)));
  return {
    flops,
    weightBytes: sum(read.values()),
    portBytes: sum(ports),
    unknown: [...unknown].sort(),
  };
}

/** An empty proto3-like field reads as nothing. */
function told(dim: { dimValue: bigint } | { dimParam: string }): bigint {
  return "dimValue" in dim ? dim.dimValue : 0n;
}

function weightOf(tensor: TensorProto | ExternalTensorProto): Tensor {
  const dims = (tensor.dims ?? []).map(Number);
  const type = typeOf(tensor.dataType);
  const inline = "rawData" in tensor && !("dataLocation" in tensor && tensor.dataLocation === EXTERNAL);
  const ints = inline && type === "i64" && countOf(dims) <= 64 ? intsIn(tensor.rawData) : undefined;
  return { dims, type, keptBytes: bytesOf({ dims, type }), ...(ints && { ints }) };
}

function intsIn(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 8 }, (_, at) => Number(view.getBigInt64(at * 8, true)));
}

/** Two for each multiply-add of a node that multiplies. */
function multiplied(
  { opType }: NodeProto,
  inputs: readonly (Tensor | undefined)[],
  [made]: readonly Tensor[],
): { readonly type: NumberType; readonly flops: number } | undefined {
  const [left, right] = inputs;
  if (left === undefined || right === undefined || made === undefined) return undefined;
  switch (opType) {
    case "MatMul":
      return { type: left.type, flops: 2 * countOf(made.dims) * (left.dims.at(-1) ?? 1) };
    case "MatMulInteger":
    case "DynamicQuantizeMatMul":
      return { type: "i8", flops: 2 * countOf(made.dims) * (left.dims.at(-1) ?? 1) };
    case "Conv":
      return { type: left.type, flops: 2 * countOf(made.dims) * countOf(right.dims.slice(1)) };
    case "Attention":
    case "GroupQueryAttention":
    case "MultiHeadAttention":
      return { type: left.type, flops: 4 * countOf(left.dims) * keysOf(right, opType, inputs) };
    default:
      return undefined;
  }
}

/** Keys that a query meets: those that are given, and of ONNX's own operator those before them. */
function keysOf({ dims }: Tensor, opType: string, inputs: readonly (Tensor | undefined)[]): number {
  const past = opType === "Attention" ? (inputs[4]?.dims.at(-2) ?? 0) : 0;
  return (dims.at(-2) ?? 1) + past;
}

function sum(values: Iterable<number>): number {
  let whole = 0;
  for (const value of values) whole += value;
  return whole;
}
