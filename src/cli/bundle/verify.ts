/**
 * `tendon bundle verify DIR`: whether a bundle is whole and correct. Golden values that lie in it are compared stage by stage, on the CPU unless
 * `--device` names another device. With `--device` its parity vectors are computed there, as a start does.
 */
import { resolve } from "node:path";
import { deviceWeightWords, hostMemoryNote } from "../../bundle/describe.ts";
import { type Bundle, readBundle, readGolden, withTolerance } from "../../bundle/read.ts";
import { gpuOptions } from "../../config/gpu.ts";
import type { Model } from "../../engine/engine.ts";
import { withEngine } from "../../measure/engine.ts";
import type { Where } from "../../measure/golden/play.ts";
import { compareGolden, goldenFacts, goldenLines, offProblem } from "../../measure/golden/report.ts";
import { Problem } from "../../std/problem.ts";
import { type Command, type CommandLine, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { boundIn, gpuKeys, wholeNumber } from "../frame/values.ts";
import { outcome } from "./outcome.ts";

const REPLICAS_MAX = 16;

export const bundleVerify: Command = {
  name: "bundle verify",
  summary:
    "Read and check every file of a bundle, and compare every stage with its golden values; with --device also compute its parity vectors there.",
  positionals: "DIR",
  flags: {
    device: { value: "DEVICE", about: "auto, cpu, cuda:0, tensorrt:0 or webgpu:0." },
    gpu: { value: "KEYS", about: "With --device: keys of the table [gpu], such as precision=f16." },
    within: {
      value: "X",
      about: "With --device: stages and rows may differ by this, in place of their limits.",
    },
    replicas: { value: "N", about: "With --device: N replicas compute them, each on its own (default 1)." },
    json: { about: "Print id, export id, weights, folder and bytes as one JSON object, and what was computed." },
  },
  async run(given) {
    const dir = resolve(given.word(0));
    const how = howOf(given);
    if (how instanceof Problem) return how;
    const read = await readBundle(dir);
    if (read instanceof Problem) return read;
    const { gpu, within, replicas } = how;
    const device = given.text("device");
    const golden = await goldenOf(
      read,
      { device: device ?? "cpu", gpu: gpuOptions(gpu) },
      within,
      device !== undefined,
    );
    if (golden instanceof Problem) return golden;
    const verified = outcome("verified", read.manifest, dir);
    const words = `${verified.words}${golden.words}`;
    const facts = { ...verified.facts, golden: golden.facts };
    if (golden.off) {
      await answer(given, { ...facts, ok: false }, golden.words.trimStart());
      return offProblem(golden.off);
    }
    if (device === undefined) return answer(given, facts, words);
    const bundle = withTolerance(read, within);
    const { tolerance } = bundle.manifest.parity;
    // The load is that of a start: a problem says what the device computed wrongly.
    return await withEngine(1, async (engine) => {
      const options = { device, gpu: gpuOptions(gpu), replicas, threads: 1, slots: replicas };
      const model = await engine.load({ bundle, ...options });
      if (model instanceof Problem) return model;
      const computed = { ...facts, ...computedFacts(model, replicas, tolerance) };
      return answer(given, computed, `${words}\n${computedLines(model, replicas, tolerance)}`);
    });
  },
};

/** What the comparison with the golden values says. */
async function goldenOf(bundle: Bundle, where: Where, within: number | undefined, isNamed: boolean) {
  const golden = await readGolden((file) => bundle.paths.get(file) ?? file, bundle.manifest);
  if (golden instanceof Problem) return golden;
  if (golden === undefined) return { words: ", no golden values to compare its stages with", facts: null };
  // No CPU computes it.
  if (bundle.manifest.compute === "bf16" && !isNamed) {
    return {
      words: "\nits golden values were not compared: bf16 is computed by a GPU, name it with --device",
      facts: null,
    };
  }
  const compared = await compareGolden(bundle, golden, where, within);
  if (compared instanceof Problem) return compared;
  return { words: `\n${goldenLines(compared)}`, facts: goldenFacts(compared), off: compared.off };
}

/** How it computes on a device. */
function howOf(given: CommandLine) {
  const foreign = ["gpu", "within", "replicas"].find((name) => given.text(name) !== undefined);
  if (given.text("device") === undefined && foreign) return usageProblem(bundleVerify, `--${foreign} needs --device`);
  const [gpu, within] = [gpuKeys(given.text("gpu") ?? ""), boundIn(bundleVerify, given)];
  if (gpu instanceof Problem) return gpu;
  if (within instanceof Problem) return within;
  const replicas = wholeNumber(bundleVerify, given, "replicas", [1, REPLICAS_MAX]) ?? 1;
  if (replicas instanceof Problem) return replicas;
  return { gpu, within, replicas };
}

/** The device on which the rows came out right, and how far they were off. */
function computedFacts(model: Model, replicas: number, tolerance: number): object {
  const { device, refused, parity, flow, flowReason, deviceWeights, sessionMemory, driverDevice } = model;
  const { sharedBytes, copiedBytes, ownBytes, reason } = deviceWeights;
  return {
    ...{ device, replicas, refused, parity, flow, tolerance, flow_reason: flowReason },
    ...{ host_memory_because: sessionMemory.hostMemoryBecause ?? null },
    ...{ own_kernels: driverDevice?.kernels ?? false, own_kernels_because: driverDevice?.kernelsReason ?? null },
    device_weights: {
      shared_bytes: sharedBytes,
      copied_bytes: copiedBytes,
      own_bytes: ownBytes,
      reason: reason ?? null,
    },
  };
}

/** How the rows were computed. */
const FLOWS = {
  none: "by one graph, without a flow",
  steps: "the flow step by step",
  whole: "the flow as one graph",
  captured: "the flow as one graph, captured",
} as const;

function computedLines(model: Model, replicas: number, tolerance: number): string {
  const { device, refused, parity, flow, flowReason, sessionMemory, driverDevice } = model;
  const { hostMemoryBecause } = sessionMemory;
  const weights = deviceWeightWords(model.deviceWeights);
  return [
    `computed on ${device}${replicas === 1 ? "" : ` by each of ${replicas} replicas`}, ${FLOWS[flow]}, at most ${tolerance.toExponential(1)} may differ`,
    ...(flowReason === null ? [] : [`  because ${flowReason}`]),
    ...(driverDevice?.kernels ? ["  tendon's own kernels moved its latents and decoded its chunks"] : []),
    ...(driverDevice?.kernelsReason === undefined
      ? []
      : [`  no kernel of tendon's ran: ${driverDevice.kernelsReason}`]),
    ...parity.map((difference, index) => `  parity vector ${index + 1}: ${difference.toExponential(1)}`),
    ...(weights === undefined ? [] : [`  ${weights}`]),
    ...refused.map(({ device, reason }) => `  ${device} refused: ${reason}`),
    ...(hostMemoryBecause === undefined ? [] : [`  ${hostMemoryNote(hostMemoryBecause)}`]),
  ].join("\n");
}
