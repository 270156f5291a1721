import { expect, test } from "bun:test";
import { gpuOptions } from "../../src/config/gpu.ts";
import { gpuPlan } from "../../src/engine/gpu-plan.ts";

test("every option is in the load plan under its own name", () => {
  expect(gpuPlan(gpuOptions(), "/c", "/k")).toEqual({
    precision: "f32",
    cuda_graph: false,
    own_kernels: false,
    kernels: "/k",
    arena_bytes_max: null,
    engine_cache: "/c/engines/ort1.30.0",
  });
  expect(gpuPlan(gpuOptions(), "/c").kernels).toBeNull();
  // Each by itself: no two can be mistaken for each other.
  const alone = (given: Parameters<typeof gpuOptions>[0]) => {
    const [before, after] = [gpuPlan(gpuOptions(), "/c"), gpuPlan(gpuOptions(given), "/c")];
    return Object.entries(after).filter(([key, value]) => before[key as keyof typeof before] !== value);
  };
  expect(alone({ precision: "bf16" })).toEqual([["precision", "bf16"]]);
  expect(alone({ cuda_graph: true })).toEqual([["cuda_graph", true]]);
  expect(alone({ own_kernels: true })).toEqual([["own_kernels", true]]);
  expect(alone({ arena_mib_max: 3 })).toEqual([["arena_bytes_max", 3 * 2 ** 20]]);
  expect(alone({ engine_cache: false })).toEqual([["engine_cache", null]]);
});
