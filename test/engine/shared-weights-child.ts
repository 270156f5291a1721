/**
 * Bundles with a weight file on `webgpu:0`, in a process that has found a software Vulkan. Prints one line of JSON for each load, as
 * `Shared`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeModel } from "../../src/bundle/onnx-schema.ts";
import { readBundle } from "../../src/bundle/read.ts";
import type { Engine, Model } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { Opened, ok, rowsOf } from "./opened.ts";

const WEBGPU = "webgpu:0";
/** Larger graphs than this keep their weights in a file: all of them. */
const INLINE_BYTES_MAX = 1 << 16;
/** Two graphs that have no matrix in common, and three that have nearly all. */
export const SHARED_NAMES = ["molmoact2-yam", "dreamzero-astra-yam"] as const;
/** A model of two replicas, and one of a single one beside it. */
export const LOADS = ["two", "beside"] as const;

/** One model on the device. */
export interface SharedWeights {
  readonly name: string;
  readonly load: (typeof LOADS)[number];
  readonly weights: Model["deviceWeights"];
  /** The bytes of the tensors in its weight file: summed over the graphs that name them, and each once. */
  readonly namedBytes: number;
  readonly distinctBytes: number;
  /** The largest difference from the CPU's rows, over all replicas. */
  readonly worst: number;
  readonly parity: readonly number[];
}

/** The bundle with its weights in a file. Its noise, which depends on the export, is that of the shipped one, as its vectors have it. */
async function outside(name: string): Promise<FlowBundle> {
  const shipped = ok(await readBundle(join(import.meta.dir, "../../dist/models", name)));
  const bundle = await bundleOf(name, "f32", { inlineBytesMax: INLINE_BYTES_MAX });
  return { ...bundle, manifest: { ...bundle.manifest, export_id: shipped.manifest.export_id } };
}

/** Bytes of the tensors that lie in its weight file. */
async function sizes({ manifest, paths }: FlowBundle): Promise<Pick<SharedWeights, "namedBytes" | "distinctBytes">> {
  const { prefill, extend, denoise } = manifest.graphs;
  const places = new Map<string, number>();
  let namedBytes = 0;
  for (const { file } of [prefill, ...(extend ? [extend] : []), denoise]) {
    const model = decodeModel(await readFile(present(paths.get(file), "a graph")), "external");
    for (const tensor of model.graph.initializer) {
      if (!("externalData" in tensor && tensor.dataLocation === 1)) continue;
      const entries = new Map(tensor.externalData.map(({ key, value }) => [key, value]));
      const bytes = Number(entries.get("length"));
      places.set(present(entries.get("offset"), "an offset"), bytes);
      namedBytes += bytes;
    }
  }
  return { namedBytes, distinctBytes: [...places.values()].reduce((sum, bytes) => sum + bytes, 0) };
}

/** The first chunk of an episode, on each replica, in a session that had none. */
async function chunks(opened: Opened, session = 0): Promise<number[][][]> {
  const [first] = await episodeOf(opened.bundle);
  if (first === undefined) throw new Error("the bundle has no episode");
  const { replicas, slots } = opened.model;
  // The slots of a model with memory are divided among its replicas.
  const slot = (at: number) =>
    opened.bundle.manifest.memory === null ? {} : { slot: (at * slots) / replicas + session };
  const runs = Array.from({ length: replicas }, (_, at) => opened.give(first.given, slot(at)));
  return (await Promise.all(runs)).map(rowsOf);
}

async function tell(engine: Engine, name: string): Promise<void> {
  const bundle = await outside(name);
  const { namedBytes, distinctBytes } = await sizes(bundle);
  const cpu = await Opened.with(engine, bundle, { slots: 2 });
  const [expected = []] = await chunks(cpu);
  await cpu.model.unload();
  const loaded = async (load: SharedWeights["load"], replicas: number): Promise<Opened> => {
    const opened = await Opened.with(engine, bundle, { slots: 2, replicas, device: WEBGPU });
    const worst = Math.max(...(await chunks(opened)).map((rows) => largestDifference(rows, expected)));
    const { deviceWeights: weights, parity } = opened.model;
    const shared: SharedWeights = { name, load, weights, namedBytes, distinctBytes, worst, parity };
    process.stdout.write(`${JSON.stringify(shared)}\n`);
    return opened;
  };
  const two = await loaded("two", 2);
  const beside = await loaded("beside", 1);
  // What the other one reads stays.
  await two.model.unload();
  const worst = Math.max(...(await chunks(beside, 1)).map((rows) => largestDifference(rows, expected)));
  if (!(worst < 1e-3)) throw new Error(`${name}: after its neighbour was unloaded its rows differ by ${worst}`);
  await beside.model.unload();
}

if (import.meta.main) {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  for (const name of SHARED_NAMES) await tell(engine, name);
  await engine.close();
}
