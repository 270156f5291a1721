/** What a graph of half precision computes on a device that rounds the result of every operator to it, as a graph of float32. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { widened } from "../../src/bundle/exact.ts";
import { DATA_TYPE, decodeModel, encodeModel, type ModelProto, type NodeProto } from "../../src/bundle/onnx-schema.ts";
import type { Half } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { emptyDir } from "./built.ts";
import type { FlowBundle } from "./flow-bundle.ts";

/** Which input has the type of the output: what is chosen. */
const TYPED_BY: Readonly<Record<string, number>> = { Where: 1 };

/** The nodes of a graph by their outputs, and the type of each value that is known without inference. */
export function traced({ node, initializer, input }: ModelProto["graph"]) {
  const makers = new Map(node.flatMap((one) => one.output.map((output) => [output, one] as const)));
  const types = new Map<string, number>([
    ...initializer.map(({ name, dataType }) => [name, dataType] as const),
    ...input.map(({ name, type }) => [name, type.tensorType.elemType] as const),
  ]);
  /** The type of what a node makes: that of its cast, or of an input, of nearly all operators of these graphs the first. */
  const typeOf = (value: string): number => {
    const known = types.get(value);
    if (known !== undefined) return known;
    const maker = present(makers.get(value), value);
    const to = maker.attribute.find(({ name }) => name === "to")?.i;
    const found =
      maker.opType === "Cast" ? Number(to) : typeOf(present(maker.input[TYPED_BY[maker.opType] ?? 0], value));
    types.set(value, found);
    return found;
  };
  return { nodes: node, typeOf };
}

/** Operators that move numbers and compute none. */
const MOVES = new Set(["Concat", "Gather", "Identity", "Reshape", "Slice", "Split", "Transpose", "Unsqueeze"]);

/** A bundle whose graphs round each result to its type, in float32: what a CPU can show of a GPU's arithmetic. */
export async function roundedEverywhereOf(bundle: FlowBundle, compute: Half): Promise<FlowBundle> {
  const folder = await emptyDir();
  const manifest = structuredClone(bundle.manifest);
  delete manifest.compute;
  const paths = new Map(bundle.paths);
  for (const { file, inputs, outputs } of Object.values(manifest.graphs)) {
    const model = decodeModel(await readFile(present(paths.get(file), file)));
    paths.set(file, join(folder, file));
    await writeFile(join(folder, file), encodeModel(roundedEverywhere(model, DATA_TYPE[compute])));
    for (const port of [...inputs, ...outputs]) if (port.dtype === compute) port.dtype = "f32";
  }
  return { ...bundle, manifest, paths };
}

/** The graph with every number of the type `half` as a float32 that has been rounded to it. Nothing is fused or left out by a device. */
function roundedEverywhere(model: ModelProto, half: number): ModelProto {
  const { graph } = model;
  const { typeOf } = traced(graph);
  const kept = graph.node.map((node) => ({ node, halves: node.output.map((output) => typeOf(output) === half) }));
  const casts = graph.node.filter(({ opType }) => opType === "Cast");
  const widens = new Set(casts.filter(({ input: [from] }) => typeOf(present(from, "what is cast")) === half));
  const rounding = (from: string, to: string): NodeProto[] => [
    cast(from, `${to}/half`, half),
    cast(`${to}/half`, to, DATA_TYPE.f32),
  ];
  const node = kept.flatMap(({ node, halves }): NodeProto[] => {
    if (node.opType === "Cast" && halves[0])
      return rounding(present(node.input[0], "what is cast"), present(node.output[0], "its name"));
    if (widens.has(node)) return [{ ...node, opType: "Identity", attribute: [] }];
    if (MOVES.has(node.opType) || !halves.some(Boolean)) return [node];
    const output = node.output.map((name) => `${name}/exact`);
    return [{ ...node, output }, ...node.output.flatMap((name) => rounding(`${name}/exact`, name))];
  });
  const initializer = graph.initializer.map((tensor) =>
    tensor.dataType === half ? { ...tensor, dataType: DATA_TYPE.f32, rawData: widened(tensor.rawData, half) } : tensor,
  );
  const single = (ports: typeof graph.input) =>
    ports.map(({ name, type: { tensorType } }) => {
      const elemType = tensorType.elemType === half ? DATA_TYPE.f32 : tensorType.elemType;
      return { name, type: { tensorType: { ...tensorType, elemType } } };
    });
  return { ...model, graph: { ...graph, node, initializer, input: single(graph.input), output: single(graph.output) } };
}

function cast(from: string, name: string, to: number): NodeProto {
  return {
    name: `${name}/cast`,
    opType: "Cast",
    input: [from],
    output: [name],
    attribute: [{ name: "to", type: 2, i: BigInt(to) }],
  };
}
