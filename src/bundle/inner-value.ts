/** Makes values inside a graph outputs too, for a comparison. */
import { DATA_TYPE, decodeModel, encodeModel, type NodeProto } from "./onnx-schema.ts";

/** A value that the last node in a scope of the graph makes, or that its nodes read. */
export interface InnerValue {
  readonly scope: string;
  /** The number of a value that other nodes make and the scope reads, in the order in which it does. */
  readonly read?: number;
  /** The name of the added output. */
  readonly name: string;
  readonly dtype: "f32" | "f16" | "bf16";
  readonly shape: readonly (string | number)[];
}

/** The graph with the values, those of scopes that it has, and their list. */
export function withInnerValues(bytes: Uint8Array, wanted: readonly InnerValue[]) {
  const model = decodeModel(bytes, "external");
  const { node: nodes, output } = model.graph;
  const values: InnerValue[] = [];
  for (const value of wanted) {
    const made = valueIn(nodes, value);
    if (made === undefined) continue;
    const renamed = (name: string) => (name === made ? value.name : name);
    for (const node of nodes) {
      node.input = node.input.map(renamed);
      node.output = node.output.map(renamed);
    }
    const dim = value.shape.map((size) => (typeof size === "number" ? { dimValue: BigInt(size) } : { dimParam: size }));
    output.push({ name: value.name, type: { tensorType: { elemType: DATA_TYPE[value.dtype], shape: { dim } } } });
    values.push(value);
  }
  return { graph: encodeModel(model), values };
}

function valueIn(nodes: readonly NodeProto[], { scope, read }: InnerValue): string | undefined {
  const inside = nodes.filter(({ name }) => name.startsWith(`${scope}.`));
  if (read === undefined) return inside.at(-1)?.output[0];
  const own = new Set(inside.flatMap(({ output }) => output));
  const made = new Set(nodes.flatMap(({ output }) => output));
  const inputs = new Set(inside.flatMap(({ input }) => input).filter((name) => made.has(name) && !own.has(name)));
  return [...inputs][read];
}
