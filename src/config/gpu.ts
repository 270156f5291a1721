/** How models run on a GPU: the table `[gpu]` for all of them, and the same keys in a `[robot."ID"]` table for that one. */
import { type Static, Type } from "@sinclair/typebox";
import { flag, oneOf, whole } from "./fields.ts";

/** Without defaults: what a model does not say is said by `[gpu]`, and what that does not say by `DEFAULTS`. */
export const GPU_KEYS = {
  /** What TensorRT may compute in where a graph has f32. CUDA and WebGPU compute in the types of the graph. */
  precision: Type.Optional(oneOf(["f32", "f16", "bf16"])),
  /** Products of f32 with ten bits of mantissa. */
  tf32: Type.Optional(flag()),
  /** A graph's kernels are captured once and launched as one. */
  cuda_graph: Type.Optional(flag()),
  /** On NVIDIA GPUs the runs of a replica are in one stream of its own, whose events time the device. */
  user_stream: Type.Optional(flag()),
  /** On NVIDIA GPUs tendon's own kernels advance latents and decode chunks, in the stream of the replica. */
  own_kernels: Type.Optional(flag()),
  /** What decodes frames; `auto`: nvJPEG where that was faster at load. */
  jpeg: Type.Optional(oneOf(["cpu", "nvjpeg", "auto"])),
  /** Device memory that the arena of one graph may take; absent: what there is. */
  arena_mib_max: Type.Optional(whole(1, 1_048_576)),
  /** By how much an arena grows. */
  arena_extend: Type.Optional(oneOf(["same_as_requested", "next_power_of_two"])),
  /** The engines that TensorRT builds are kept below the cache folder. */
  engine_cache: Type.Optional(flag()),
  /** CUDA runs what TensorRT cannot; false: such a graph is refused. */
  cuda_behind: Type.Optional(flag()),
  /** Nodes that compute shapes may run on the CPU; false: a graph that has such nodes is refused. */
  shapes_on_cpu: Type.Optional(flag()),
};

export const GpuTable = Type.Object(GPU_KEYS, { additionalProperties: false, default: {} });

export type GpuSettings = Static<typeof GpuTable>;

/**
 * A provider computes what the CPU computes, and all memory is taken at load. No stream of ours: it is there for times, which cost two
 * calls of the driver a run, and how ONNX Runtime arranges its work by itself is what its makers test.
 */
const DEFAULTS = {
  precision: "f32",
  tf32: false,
  cuda_graph: false,
  user_stream: false,
  own_kernels: false,
  jpeg: "cpu",
  arena_extend: "same_as_requested",
  engine_cache: true,
  cuda_behind: true,
  shapes_on_cpu: true,
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
    tf32: said.tf32,
    cudaGraph: said.cuda_graph,
    userStream: said.user_stream,
    ownKernels: said.own_kernels,
    jpeg: said.jpeg,
    arenaBytesMax: mib === undefined ? undefined : mib * 2 ** 20,
    arenaExtend: said.arena_extend,
    engineCache: said.engine_cache,
    cudaBehind: said.cuda_behind,
    shapesOnCpu: said.shapes_on_cpu,
  });
}
