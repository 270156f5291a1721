/**
 * Does a service outlive the loss of a GPU? `bun bench/gpu/lost.ts BUNDLE DEVICE`, for bench/gpu.sh. It prints one JSON object.
 *
 * A kernel that ends in a trap runs in the context that this process shares with ONNX Runtime. The driver refuses every later call on the
 * device then. The model has another replica on the CPU, which has to answer. The process has to end in order.
 */
import { dlopen, ptr } from "bun:ffi";
import { readBundle } from "../../src/bundle/read.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import { withEngine } from "../../src/measure/engine.ts";
import { observationsOf } from "../../src/measure/gpu/observations.ts";
import { inferred } from "../../src/measure/inference.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { report } from "../child.ts";

const CHUNKS = 8;
const TRAP = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry trap_now()\n{\n  trap;\n}\n\0";

const DRIVER = {
  cuDevicePrimaryCtxRetain: { args: ["ptr", "i32"], returns: "i32" },
  cuCtxPushCurrent_v2: { args: ["ptr"], returns: "i32" },
  cuModuleLoadData: { args: ["ptr", "ptr"], returns: "i32" },
  cuModuleGetFunction: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  cuLaunchKernel: {
    args: ["ptr", "u32", "u32", "u32", "u32", "u32", "u32", "u32", "ptr", "ptr", "ptr"],
    returns: "i32",
  },
  cuCtxSynchronize: { args: [], returns: "i32" },
} as const;

/** Has the driver lose the device; the number that it answers then. */
function lose(number: number): number | Problem {
  const { symbols: driver } = dlopen("libcuda.so.1", DRIVER);
  const [context, module, kernel] = [new BigUint64Array(1), new BigUint64Array(1), new BigUint64Array(1)];
  const of = (handle: BigUint64Array) => handle[0] ?? 0n;
  const [text, name] = [Buffer.from(TRAP), Buffer.from("trap_now\0")];
  const codes = [
    () => driver.cuDevicePrimaryCtxRetain(ptr(context), number),
    () => driver.cuCtxPushCurrent_v2(of(context)),
    () => driver.cuModuleLoadData(ptr(module), ptr(text)),
    () => driver.cuModuleGetFunction(ptr(kernel), of(module), ptr(name)),
    () => driver.cuLaunchKernel(of(kernel), 1, 1, 1, 1, 1, 1, 0, null, null, null),
  ].map((call) => call());
  const refused = codes.findIndex((code) => code !== 0);
  if (refused >= 0) return new Problem(`call ${refused} to lose the device was refused with ${codes[refused]}`);
  return driver.cuCtxSynchronize();
}

async function main(dir: string, device: string): Promise<object | Problem> {
  const bundle = await readBundle(dir);
  if (bundle instanceof Problem) return bundle;
  const observed = present((await observationsOf(bundle))[0], "an observation");
  return await withEngine(2, async (engine) => {
    const gpu = gpuOptions({ cuda_graph: true, own_kernels: true });
    const model = await engine.load({ bundle, device: [device, "cpu"], gpu, replicas: 2, threads: 1, slots: 2 });
    if (model instanceof Problem) return model;
    const ends: (string | "rows")[][] = [[], []];
    let code: number | Problem = 0;
    for (const part of ends) {
      // Two at once, so that both replicas have some.
      for (let step = 0; step < CHUNKS; step += 1) {
        const both = await Promise.all([0, 1].map((turn) => inferred(model, observed, { turn, step })));
        part.push(...both.map((end) => (end instanceof Problem ? end.message : "rows")));
      }
      if (part === ends[0]) code = lose(Number(device.split(":")[1] ?? 0));
      if (code instanceof Problem) return code;
    }
    const lost = model.lost.map(({ device: of, cause, reason }) => ({ device: of, cause, reason }));
    await model.unload();
    const [before = [], after = []] = ends.map((part) => part.filter((end) => end !== "rows"));
    return {
      code,
      lost,
      chunks: 2 * CHUNKS,
      failed_before: before.length,
      failed_after: after.length,
      said: after[0] ?? null,
    };
  });
}

const [dir = "", device = "cuda:0"] = process.argv.slice(2);
await report(() => main(dir, device));
