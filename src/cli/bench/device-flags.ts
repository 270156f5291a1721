/** The flags of `tendon bench` that say where a model runs and how: a device, and for the suite `gpu` batches and keys of `[gpu]`. */
import type { GpuSettings } from "../../config/gpu.ts";
import { Problem } from "../../std/problem.ts";
import { type Command, type Given, usageProblem } from "../frame/command.ts";
import { gpuKeys } from "../frame/gpu-keys.ts";
import { boundIn, wholeNumber } from "../frame/values.ts";

export const DEVICE_FLAGS = {
  batch: { value: "N", about: "gpu: the most observations at once, 1 to 16: 1, 2, 4 and so on (default 8)." },
  gpu: { value: "KEYS", about: "gpu: keys of the table [gpu], such as cuda_graph=true,precision=bf16." },
  within: {
    value: "X",
    about: "gpu: rows may differ by this, in their units, in place of a bundle's own tolerance; the report says both.",
  },
} as const;

const NAMES = Object.keys(DEVICE_FLAGS) as (keyof typeof DEVICE_FLAGS)[];
const BATCH = { usual: 8, max: 16 } as const;
const SERVED = /^(auto|cpu|(cuda|tensorrt|webgpu):\d{1,2})$/;

/** What the suite `gpu` alone takes. */
export interface DevicePlan {
  readonly batchMax: number;
  readonly gpu: GpuSettings;
  readonly within: number | undefined;
}

/** `any`: the suite runs on each device, not on those alone that a machine without a GPU has. */
export function deviceOf(command: Command, given: Given, any: boolean): string | undefined | Problem {
  const device = given.text("device");
  if (device === undefined) return undefined;
  if (any) {
    if (SERVED.test(device)) return device;
    return usageProblem(command, `--device is '${device}', expected auto, cpu, cuda:N, tensorrt:N or webgpu:N`);
  }
  if (device === "echo" || device === "cpu") return device;
  return usageProblem(command, `--device is '${device}', expected echo or cpu`);
}

export function devicePlan(command: Command, given: Given, suite: string): DevicePlan | Problem {
  const foreign = NAMES.find((name) => given.text(name) !== undefined);
  if (suite !== "gpu" && foreign !== undefined) return usageProblem(command, `--${foreign} is not for ${suite}`);
  const batchMax = wholeNumber(command, given, "batch", [1, BATCH.max]) ?? BATCH.usual;
  if (batchMax instanceof Problem) return batchMax;
  const gpu = gpuKeys(given.text("gpu") ?? "");
  if (gpu instanceof Problem) return gpu;
  const within = boundIn(command, given);
  return within instanceof Problem ? within : { batchMax, gpu, within };
}
