/** `tendon bundle build|verify|show`. `verify --device` also computes the parity vectors there, as a start does. */
import { resolve } from "node:path";
import { buildBundle, HALVES } from "../bundle/build.ts";
import { attentionWords, describe, hostMemoryNote, show } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { readBundle } from "../bundle/read.ts";
import type { Progress } from "../bundle/weight-file.ts";
import { PRECISIONS } from "../bundle/weights.ts";
import type { GpuSettings } from "../config/gpu.ts";
import { deviceWeightWords } from "../engine/device-weights.ts";
import { Problem } from "../error/problem.ts";
import { shown } from "./bundle-build/shown.ts";
import { type Computed, computeParity } from "./bundle-verify/parity.ts";
import { type Command, type Given, usageProblem } from "./frame/command.ts";
import { gpuKeys } from "./frame/gpu-keys.ts";
import { answer } from "./frame/print.ts";
import { boundIn } from "./frame/values.ts";

export const bundle: Command = {
  name: "bundle",
  summary: "Builds, verifies and shows model bundles: build MODEL_DIR --out DIR, verify DIR, show DIR.",
  positionals: "build|verify|show DIR",
  flags: {
    out: { value: "DIR", about: "Where `build` puts the bundle; a bundle that stands there is replaced." },
    weights: {
      value: PRECISIONS.join("|"),
      about:
        "`build`: how the large matrices are kept. int8 is faster on a CPU with VNNI, bf16 half as large, in a file of its own, fp8 with --compute a quarter as large, for GPUs that multiply it; each has its own parity tolerance (default f32).",
    },
    compute: {
      value: HALVES.join("|"),
      about:
        "`build`: for a GPU: weights, activations and caches are of this type, with a parity tolerance of their own, and frames are normalised in the graph. The CPU computes f16 too, no faster, and no bf16.",
    },
    attention: {
      value: "fused",
      about:
        "`build --compute`: write attention as ONNX's one operator, for which a GPU may have a kernel of its own, and not as products and a softmax.",
    },
    device: {
      value: "DEVICE",
      about:
        "`verify`: also compute the bundle's parity vectors on this device: auto, cpu, cuda:0, tensorrt:0 or webgpu:0.",
    },
    gpu: { value: "KEYS", about: "`verify --device`: keys of the table [gpu], such as precision=f16." },
    within: {
      value: "X",
      about: "`verify --device`: rows may differ by this, in their units, in place of the bundle's own tolerance.",
    },
    json: { about: "Print JSON: the manifest (show), or id, export id, weights, folder and bytes (build, verify)." },
  },
  async run(given) {
    const [action, folder, ...rest] = given.positionals;
    if (action !== "build" && action !== "verify" && action !== "show") {
      const found = action === undefined ? "nothing" : `'${action}'`;
      return usageProblem(bundle, `expected build, verify or show, found ${found}`);
    }
    if (folder === undefined) return usageProblem(bundle, `'bundle ${action}' needs a folder`);
    if (rest.length > 0) return usageProblem(bundle, `unexpected argument '${rest[0]}'`);
    const [dir, out, device] = [resolve(folder), given.text("out"), given.text("device")];
    const weights = given.text("weights");
    const asked = given.text("compute");
    if (asked !== undefined && action !== "build") return usageProblem(bundle, "--compute belongs to 'bundle build'");
    const attention = given.text("attention");
    if (attention !== undefined && action !== "build") {
      return usageProblem(bundle, "--attention belongs to 'bundle build'");
    }
    if (weights !== undefined && action !== "build") return usageProblem(bundle, "--weights belongs to 'bundle build'");
    if (device !== undefined && action !== "verify") return usageProblem(bundle, "--device belongs to 'bundle verify'");
    if (action === "build") {
      if (out === undefined) return usageProblem(bundle, "'bundle build' needs --out DIR");
      const precision = PRECISIONS.find((one) => one === (weights ?? "f32"));
      if (precision === undefined) {
        return usageProblem(bundle, `--weights is '${weights}', expected ${PRECISIONS.join(", ")}`);
      }
      const compute = HALVES.find((one) => one === asked);
      if (asked !== undefined && compute === undefined) {
        return usageProblem(bundle, `--compute is '${asked}', expected ${HALVES.join(" or ")}`);
      }
      if (precision === "fp8" && compute === undefined) {
        const either = HALVES.map((one) => `--compute ${one}`).join(" or ");
        return usageProblem(bundle, `--weights fp8 is for builds for GPUs: give ${either} with it`);
      }
      if (compute && precision !== "f32" && precision !== "fp8") {
        const those = `those of --compute ${compute} are ${compute} or fp8`;
        return usageProblem(bundle, `--weights is '${weights}', but ${those}`);
      }
      if (attention !== undefined && attention !== "fused") {
        return usageProblem(bundle, `--attention is '${attention}', expected fused`);
      }
      if (attention && (compute === undefined || precision === "fp8")) {
        const either = HALVES.map((one) => `--compute ${one}`).join(" or ");
        return usageProblem(bundle, `--attention ${attention} goes with ${either}, and with no --weights`);
      }
      const half = attention && { half: { attention: "fused" as const } };
      const build = (progress?: Progress) =>
        buildBundle(dir, resolve(out), precision, {
          ...(progress && { progress }),
          ...(compute && { compute }),
          ...half,
        });
      const built = await (given.on("json") ? build() : shown(build));
      return built instanceof Problem ? built : report(given, "built", built, resolve(out));
    }
    if (out !== undefined) return usageProblem(bundle, "--out belongs to 'bundle build'");
    const read = await readBundle(dir);
    if (read instanceof Problem) return read;
    const { manifest } = read;
    if (action === "verify") {
      const how = howOf(given);
      if (how instanceof Problem) return how;
      if (device === undefined) return report(given, "verified", manifest, dir);
      const computed = await computeParity(read, device, how);
      if (computed instanceof Problem) return computed;
      const { within = manifest.parity.tolerance } = how;
      return report(given, "verified", manifest, dir, { ...computed, tolerance: within });
    }
    return answer(given, { ...manifest, description: describe(manifest) }, show(manifest));
  },
};

/** How `verify` computes on a device. */
function howOf(given: Given): { readonly gpu: GpuSettings; readonly within?: number } | Problem {
  const [gpu, within] = [gpuKeys(given.text("gpu") ?? ""), boundIn(bundle, given)];
  const foreign = (["gpu", "within"] as const).find((name) => given.text(name) !== undefined);
  if (given.text("device") === undefined && foreign) return usageProblem(bundle, `--${foreign} needs --device`);
  if (gpu instanceof Problem) return gpu;
  if (within instanceof Problem) return within;
  return { gpu, ...(within !== undefined && { within }) };
}

/** What a build for GPUs computes in, behind the type of its weights. */
function arithmeticOf({ compute, weights, attention }: Manifest): string {
  if (compute === undefined) return "";
  const told = weights === undefined ? " and arithmetic" : `, ${compute} arithmetic`;
  return [told, attentionWords(attention)].filter((one) => one !== undefined).join(", ");
}

/** One line, or one JSON object, about a whole and correct bundle; with a device a line for each parity vector. */
async function report(
  given: Given,
  done: "built" | "verified",
  manifest: Manifest,
  dir: string,
  computed?: Computed & { readonly tolerance: number },
): Promise<number> {
  const { id, export_id, reference, compute, attention, weights = compute ?? "f32", files } = manifest;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const kept = weights === "f32" ? "" : `, ${weights} weights${arithmeticOf(manifest)}`;
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}${kept}: ${files.length} files, ${bytes} bytes, ${dir}`;
  const facts = {
    ok: true,
    id,
    export_id,
    reference,
    weights,
    ...(compute && { compute }),
    ...(attention && { attention }),
    dir,
    files: files.length,
    bytes,
  };
  if (computed === undefined) return answer(given, facts, words);
  const { flowReason, deviceWeights, hostMemoryBecause, card, ...told } = computed;
  const { sharedBytes, copiedBytes, ownBytes, reason } = deviceWeights;
  const onDevice = {
    shared_bytes: sharedBytes,
    copied_bytes: copiedBytes,
    own_bytes: ownBytes,
    reason: reason ?? null,
  };
  const kernels = { own_kernels: card?.launched ?? false, own_kernels_because: card?.unlaunched ?? null };
  const why = { flow_reason: flowReason, host_memory_because: hostMemoryBecause ?? null };
  return answer(
    given,
    { ...facts, ...told, ...why, ...kernels, device_weights: onDevice },
    `${words}\n${computedLines(computed, computed.tolerance)}`,
  );
}

/** How the steps of a flow were run. */
const FLOWS = { steps: "step by step", whole: "as one graph", captured: "as one graph, captured" } as const;

function computedLines(computed: Computed, tolerance: number): string {
  const { device, refused, parity, flow, flowReason, deviceWeights, hostMemoryBecause, card } = computed;
  const weights = deviceWeightWords(deviceWeights);
  return [
    `computed on ${device}, the flow ${FLOWS[flow]}, at most ${tolerance.toExponential(1)} may differ`,
    ...(flowReason === null ? [] : [`  because ${flowReason}`]),
    ...(card?.launched ? ["  tendon's own kernels moved its latents and decoded its chunks"] : []),
    ...(card?.unlaunched === undefined ? [] : [`  no kernel of tendon's ran: ${card.unlaunched}`]),
    ...parity.map((difference, index) => `  parity vector ${index + 1}: ${difference.toExponential(1)}`),
    ...(weights === undefined ? [] : [`  ${weights}`]),
    ...refused.map(({ device, reason }) => `  ${device} refused: ${reason}`),
    ...(hostMemoryBecause === undefined ? [] : [`  ${hostMemoryNote(hostMemoryBecause)}`]),
  ].join("\n");
}
