/** How models run on a GPU: the table `[gpu]` for all of them, and the same keys in a `[robot."ID"]` table for that one. */
import { type Static, Type } from "@sinclair/typebox";
import { flag, oneOf, whole } from "./fields.ts";

/** Without defaults: what a model does not say is said by `[gpu]`, and what that does not say by `DEFAULTS`. */
export const GPU_KEYS = {
  /** What TensorRT may compute in where a graph has f32. CUDA and WebGPU compute in the types of the graph. */
  precision: Type.Optional(oneOf(["f32", "f16", "bf16"])),
  /** A graph's kernels are captured once and launched as one. */
  cuda_graph: Type.Optional(flag()),
  /** On NVIDIA GPUs tendon's own kernels advance latents and decode chunks, in the stream of the replica. */
  own_kernels: Type.Optional(flag()),
  /** Device memory that the arena of one graph may take; absent: what there is. */
  arena_mib_max: Type.Optional(whole(1, 1_048_576)),
  /** The engines that TensorRT builds are kept below the cache folder. */
  engine_cache: Type.Optional(flag()),
};

export const GpuTable = Type.Object(GPU_KEYS, { additionalProperties: false, default: {} });

export type GpuSettings = Static<typeof GpuTable>;

/** A provider computes what the CPU computes. */
const DEFAULTS = {
  precision: "f32",
  cuda_graph: false,
  own_kernels: false,
  engine_cache: true,
} as const satisfies GpuSettings;

/** The table with every default written out. */
export function gpuTable(given: GpuSettings): GpuSettings {
  return { ...DEFAULTS, ...given };
}

/** The keys of a model's table that are about GPUs. */
export function gpuOf(table: GpuSettings): GpuSettings {
  return Object.fromEntries(Object.entries(table).filter(([key, value]) => key in GPU_KEYS && value !== undefined));
}

export type GpuOptions = ReturnType<typeof gpuOptions>;

/** What a model runs with: its own keys win over the host's. */
export function gpuOptions(host: GpuSettings = {}, model: GpuSettings = {}) {
  const { arena_mib_max: mib, ...said } = { ...DEFAULTS, ...host, ...model };
  return Object.freeze({
    precision: said.precision,
    cudaGraph: said.cuda_graph,
    ownKernels: said.own_kernels,
    arenaBytesMax: mib === undefined ? undefined : mib * 2 ** 20,
    engineCache: said.engine_cache,
  });
}
