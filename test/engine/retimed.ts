/** A variant whose step is told its time in another type or shape: its graph makes of it what it was told before. */
import { ATTRIBUTE_TYPE, DATA_TYPE, type ModelProto } from "../../src/bundle/onnx-schema.ts";
import type { Bundle } from "../../src/engine/engine.ts";
import { present } from "../../src/std/assert.ts";
import { changed } from "./wrong-provider.ts";

export interface TimeAs {
  readonly dtype: "f32" | "i32" | "i64";
  /** [], [1], or a value for each row. */
  readonly shape: readonly (1 | "batch")[];
  /** For a model whose time has none: each of its times begins one. */
  readonly buckets?: number;
}

/** In each type and shape that a manifest may name. */
export const TIMES: readonly TimeAs[] = (["f32", "i32", "i64"] as const).flatMap((dtype) =>
  ([[], [1], ["batch"]] as const).map((shape) => ({ dtype, shape })),
);

/** The bundle with another time, and its step in a file of its own. */
export async function retimed(bundle: Bundle, as: TimeAs): Promise<Bundle> {
  const manifest = structuredClone(bundle.manifest);
  const { file, inputs } = manifest.graphs.denoise;
  const time = present(
    inputs.find(({ role }) => role === "time"),
    "a time",
  );
  const { dtype, name } = time;
  const graph = await changed(bundle, file, (model) => retime(model, name, DATA_TYPE[dtype], as));
  Object.assign(time, { ...as, shape: [...as.shape] });
  return { manifest, paths: new Map([...bundle.paths, [file, graph]]) };
}

/** Takes the input as the type and shape, and gives the nodes [1] of the type `told`; of a time for each row that of the last one. */
function retime({ graph }: ModelProto, name: string, told: number, { dtype, shape, buckets = 1 }: TimeAs): void {
  const input = present(
    graph.input.find((one) => one.name === name),
    "the input",
  );
  for (const node of graph.node) node.input = node.input.map((one) => (one === name ? `${name} told` : one));
  const sizes = shape.map((size) => (size === 1 ? { dimValue: 1n } : { dimParam: size }));
  input.type.tensorType = { elemType: DATA_TYPE[dtype], shape: { dim: sizes } };
  const [one, typed] = [`${name} one`, `${name} typed`];
  // The only one, or the last.
  const index = shape.length === 0 ? 0n : -1n;
  graph.initializer.push(
    { name: `${name} at`, dims: [1n], dataType: DATA_TYPE.i64, rawData: bytesOf(BigInt64Array.of(index)) },
    { name: `${name} buckets`, dims: [1n], dataType: told, rawData: numberOf(buckets, told) },
  );
  const to = { name: "to", type: ATTRIBUTE_TYPE.int, i: BigInt(told) };
  const pick = { name: one, opType: shape.length === 0 ? "Unsqueeze" : "Gather", input: [name, `${name} at`] };
  graph.node.unshift(
    { ...pick, output: [one], attribute: [] },
    { name: typed, opType: "Cast", input: [one], output: [typed], attribute: [to] },
    { name: `${name} told`, opType: "Div", input: [typed, `${name} buckets`], output: [`${name} told`], attribute: [] },
  );
}

const bytesOf = ({ buffer }: BigInt64Array | Float32Array) => new Uint8Array(buffer);

/** As the one value of a tensor in f32 or i64. */
function numberOf(value: number, type: number): Uint8Array {
  return bytesOf(type === DATA_TYPE.f32 ? Float32Array.of(value) : BigInt64Array.of(BigInt(value)));
}
