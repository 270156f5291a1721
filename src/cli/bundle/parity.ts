/** Computes a bundle's parity vectors on a device of this machine. */

import type { Bundle } from "../../bundle/read.ts";
import { withTolerance } from "../../bundle/read.ts";
import { type GpuSettings, gpuOptions } from "../../config/gpu.ts";
import { LOAD_MS_MAX, type Model } from "../../engine/engine.ts";
import { openEngine } from "../../engine/native.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";

/** Where they came out right, and how far they were off. */
export interface Computed
  extends Pick<
    Model,
    "device" | "replicas" | "refused" | "parity" | "flow" | "flowReason" | "deviceWeights" | "driverDevice"
  > {
  /** Why the memory of its sessions does not lie on the device. */
  readonly hostMemoryBecause?: string;
}

/** Loads the bundle as a start does; a problem says what the device computed wrongly. `within`: in place of the bundle's tolerance. */
export async function computeParity(
  given: Bundle,
  device: string,
  {
    gpu = {},
    within,
    replicas = 1,
  }: { readonly gpu?: GpuSettings; readonly within?: number; readonly replicas?: number } = {},
): Promise<Computed | Problem> {
  const bundle = withTolerance(given, within);
  const engine = await openEngine({ decodeThreads: 1 });
  if (engine instanceof Problem) return engine;
  // The engine's callback does not keep the process alive while a model loads; a timer does.
  const release = systemClock.after(LOAD_MS_MAX, () => undefined);
  try {
    const model = await engine.load({ bundle, device, gpu: gpuOptions(gpu), replicas, threads: 1, slots: replicas });
    if (model instanceof Problem) return model;
    const { device: chosen, refused, parity, flow, flowReason, deviceWeights, sessionMemory, driverDevice } = model;
    const { hostMemoryBecause } = sessionMemory;
    return {
      ...{ device: chosen, replicas, refused, parity, flow, flowReason, deviceWeights, driverDevice },
      ...(hostMemoryBecause !== undefined && { hostMemoryBecause }),
    };
  } finally {
    await engine.close();
    release();
  }
}
