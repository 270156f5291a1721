/** The part of a load plan about GPUs, as native/src/ort/provider.rs reads it. */
import { join } from "node:path";
import type { GpuOptions } from "../config/gpu.ts";
import { PREBUILT } from "./library.ts";

/** `kernels`: the device code of this build, where there is one. `cache`: the cache folder. TensorRT's engines lie below it by ONNX Runtime's version; what else they depend on the library adds. */
export function gpuPlan(options: GpuOptions, cache: string, kernels?: string) {
  return {
    precision: options.precision,
    cuda_graph: options.cudaGraph,
    own_kernels: options.ownKernels,
    kernels: kernels ?? null,
    arena_bytes_max: options.arenaBytesMax ?? null,
    engine_cache: options.engineCache ? join(cache, "engines", `ort${PREBUILT.runtime.version}`) : null,
  };
}
