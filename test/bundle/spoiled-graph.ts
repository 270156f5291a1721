/** Changes of a bundle's graphs, each of them a mistake that somebody made with a published model. */
import { decodeModel, encodeModel, type ModelProto, type NodeProto } from "../../src/bundle/onnx-schema.ts";
import { present } from "../../src/std/assert.ts";
import type { Spoil } from "./spoiled-bundle.ts";

type Graph = ModelProto["graph"];
type GraphFile = "prefill" | "denoise";
/** Changes values in place, row-major of the given shape. */
export type Change = (values: Float32Array, dims: readonly number[]) => unknown;

/** Changes a graph in place. */
export function graphOf(file: GraphFile, change: (graph: Graph) => void): Spoil {
  return (files) => {
    const model = decodeModel(files.get(`${file}.onnx`) ?? new Uint8Array());
    change(model.graph);
    files.set(`${file}.onnx`, encodeModel(model));
  };
}

/** Changes the values of an f32 initialiser, which lies in the graph itself, in place. */
export function weight(file: GraphFile, name: string, change: Change): Spoil {
  return graphOf(file, ({ initializer }) => {
    const tensor = present(
      initializer.find((one) => one.name === name),
      name,
    );
    const values = new Float32Array(new Uint8Array(tensor.rawData).buffer);
    change(values, tensor.dims.map(Number));
    tensor.rawData = new Uint8Array(values.buffer);
  });
}

export const scaled =
  (factor: number): Change =>
  (values) =>
    values.set(values.map((value) => factor * value));
export const more =
  (added: number): Change =>
  (values) =>
    values.set(values.map((value) => value + added));

export const filled =
  (value: number, from = 0) =>
  (old: Float32Array) =>
    old.fill(value, from);

/** The halves of the columns [from, to) of each row change places. */
export const halves =
  (from: number, to: number) =>
  (old: Float32Array, [rows = 0, columns = 0]: readonly number[]) => {
    for (let row = 0; row < rows; row += 1) {
      const part = old.subarray(row * columns + from, row * columns + to);
      part.set([...part.subarray(part.length / 2), ...part.subarray(0, part.length / 2)]);
    }
  };

export const transposed: Change = (values, [rows = 0, columns = 0]) => {
  const old = values.slice();
  values.forEach((_, at) => {
    values[at] = old[(at % rows) * columns + Math.floor(at / rows)] ?? 0;
  });
};

function node(opType: string, input: string[], output: string, attributes: Record<string, number> = {}): NodeProto {
  const attribute = Object.entries(attributes).map(([name, i]) => ({ name, type: 2, i: BigInt(i) }));
  return { name: output, opType, input, output: [output], attribute };
}

export function named({ node: nodes }: Graph, name: string): NodeProto {
  return present(
    nodes.find((one) => one.name === name),
    name,
  );
}

/** Puts nodes behind the one named so; the last of them gives the value that is read in place of its output. */
function behind(graph: Graph, name: string, make: (value: string) => NodeProto[]): void {
  const before = named(graph, name);
  const value = present(before.output[0], "its output");
  const made = make(`${value}/right`);
  for (const one of graph.node) one.output = one.output.map((output) => (output === value ? `${value}/right` : output));
  present(made.at(-1), "a node").output = [value];
  graph.node.splice(graph.node.indexOf(before) + 1, 0, ...made);
}

function ints(graph: Graph, name: string, values: number[]): string {
  const rawData = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  graph.initializer.push({ name, dims: [BigInt(values.length)], dataType: 7, rawData });
  return name;
}

/** Every token of the prefix sees itself and those before it. */
export function causalPrefix(heads: number, kvHeads: number): Spoil {
  return graphOf("prefill", (graph) =>
    behind(graph, "language.blocks.0.softmax", (value) => [
      node("Reshape", [value, ints(graph, "heads", [0, heads, -1, 0])], "square"),
      node("Trilu", ["square"], "lower", { upper: 0 }),
      node("ReduceSum", ["lower", ints(graph, "last axis", [-1])], "sums", { keepdims: 1 }),
      node("Div", ["lower", "sums"], "mixed"),
      node("Reshape", ["mixed", ints(graph, "groups", [0, kvHeads, -1, 0])], "back"),
    ]),
  );
}

export const silu = graphOf("denoise", (graph) => {
  const gelu = named(graph, "expert.blocks.0.mlp.gelu");
  const [x = "", y = ""] = [gelu.input[0], gelu.output[0]];
  graph.node.splice(graph.node.indexOf(gelu), 1, node("Sigmoid", [x], "gate"), node("Mul", [x, "gate"], y));
});

/** GELU for SiLU. */
export const gelu = graphOf("denoise", (graph) => {
  const product = named(graph, "expert.blocks.0.mlp.mul");
  const [x = "", y = ""] = [product.input[0], product.output[0]];
  graph.node.splice(graph.node.indexOf(product), 1, node("Gelu", [x], y));
});

export const fromZero = graphOf("denoise", (graph) => {
  const add = named(graph, "expert.add");
  const [count = ""] = add.input;
  graph.node.splice(graph.node.indexOf(add), 0, node("Mul", [count, ints(graph, "none", [0])], "no prefix"));
  add.input[0] = "no prefix";
});

/** The rows' numbers are higher by `added`. */
export function numbered(added: number): Spoil {
  return graphOf("denoise", (graph) => {
    const [, rows] = named(graph, "expert.add").input;
    const numbers = present(
      graph.initializer.find(({ name }) => name === rows),
      "the numbers of the rows",
    );
    const old = new BigInt64Array(new Uint8Array(numbers.rawData).buffer);
    numbers.rawData = new Uint8Array(old.map((number) => number + BigInt(added)).buffer);
  });
}

/** Another epsilon of all norms of a kind in a graph. */
export function epsilon(file: GraphFile, scope: string, value: number): Spoil {
  return graphOf(file, ({ node: nodes }) => {
    const norms = nodes.filter(({ name, opType }) => name.startsWith(scope) && opType.endsWith("Normalization"));
    const attributes = norms.flatMap(({ attribute }) => attribute.filter(({ name }) => name === "epsilon"));
    for (const one of attributes) one.f = value;
    present(attributes[0], `a norm of ${scope}`);
  });
}
