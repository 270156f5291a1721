/** Whether the graphs of a manifest have the inputs and outputs that its facts ask for, and fit each other. */
import { fault, firstRepeated } from "./fault.ts";
import { checkInputs } from "./input-consistency.ts";
import { graphSizes } from "./input-roles.ts";
import type { Graph, Manifest } from "./manifest.ts";

type AnyPort = Graph["inputs"][number] | Graph["outputs"][number];

/** The first contradiction, as `contradiction` says it. */
export function checkGraphs(manifest: Manifest): string | undefined {
  return checkInputs(manifest) ?? checkOutputs(manifest) ?? checkDenoise(manifest) ?? checkSources(manifest);
}

/** Outputs of prefill and extend. Blocks have the tokens of the longest block. */
function checkOutputs(manifest: Manifest): string | undefined {
  const { memory, graphs, flow, action } = manifest;
  const { branches, prefix } = graphSizes(manifest);
  const { outputs } = graphs.prefill;
  const path = "/graphs/prefill/outputs";
  if (flow === null) {
    const chunk = onePort(path, outputs, "actions", [branches, action.rows, action.width]);
    return chunk ?? onlyRoles(path, outputs, ["actions"]);
  }
  const roles = onlyRoles(path, outputs, memory === null ? ["cache"] : ["cache", "block"]);
  if (roles !== undefined) return roles;
  for (const [index, { shape, name, role, dtype }] of outputs.entries()) {
    const place = `${path}/${index}`;
    if (shape[0] !== branches || shape.slice(1).includes("batch"))
      return fault(`${place}/shape`, shape, `${branches} first and no other batch (${name})`);
    // Without memory a cache holds the prefix: the tokens of every frame, then the prompt, then a state that prefill reads.
    const along = shape.length === 2 ? 1 : shape.length - 2;
    const words = shape.filter((size, index) => typeof size === "string" && index > 0 && index !== along);
    if (words.length > 0) return fault(`${place}/shape`, shape, `numbers beside rows and tokens (${name})`);
    if (memory === null && shape[along] !== prefix)
      return fault(`${place}/shape`, shape, `${prefix} prefix tokens (${name})`);
    if (role !== "block" || memory === null) continue;
    const tokens = Math.max(memory.first, memory.later) * memory.tokens;
    if (!FLOATS.includes(dtype)) return fault(`${place}/dtype`, dtype, FLOATS.join(", "));
    if (shape.length < 3 || shape.at(-2) !== tokens)
      return fault(`${place}/shape`, shape, `${tokens} tokens before the last (${name})`);
  }
  if (memory !== null && !outputs.some(({ role }) => role === "block"))
    return fault(path, "no block", "one to remember");
  const repeated = firstRepeated(outputs.map(({ name }) => name));
  if (repeated !== undefined)
    return fault(`${path}/${repeated}/name`, outputs[repeated]?.name, "a name that stands once");
  if (graphs.extend && !sameOutputs(outputs, graphs.extend.outputs)) {
    const names = graphs.extend.outputs.map(({ name }) => name);
    return fault("/graphs/extend/outputs", names, "those of the prefill graph, with the same roles and shapes");
  }
  return undefined;
}

/** In any order. */
function sameOutputs(one: readonly AnyPort[], other: readonly AnyPort[]): boolean {
  return one.length === other.length && one.every((port) => other.some((twin) => Bun.deepEquals(port, twin)));
}

/** The velocity of each latent. */
function checkDenoise(manifest: Manifest): string | undefined {
  const { action, graphs, guidance } = manifest;
  if (graphs.denoise === undefined) return undefined;
  const { branches } = graphSizes(manifest);
  const { inputs, outputs } = graphs.denoise;
  const path = "/graphs/denoise/outputs";
  const video = inputs.find(({ role }) => role === "video_latent");
  return (
    onePort(path, outputs, "velocity", [branches, action.rows, action.width]) ??
    (guidance?.apply.includes("video") && !video
      ? fault("/guidance/apply", guidance.apply, "no video, without a video latent")
      : undefined) ??
    (video && onePort(path, outputs, "video_velocity", [branches, ...video.shape.slice(1)])) ??
    onlyRoles(path, outputs, video ? ["velocity", "video_velocity"] : ["velocity"])
  );
}

/** Inputs that another graph produces name an output of prefill with the same type and shape. */
function checkSources({ graphs, memory }: Manifest): string | undefined {
  const made = new Map(graphs.prefill.outputs.map((output) => [output.name, output]));
  for (const name of ["denoise", "extend"] as const) {
    for (const [index, input] of (graphs[name]?.inputs ?? []).entries()) {
      const place = `/graphs/${name}/inputs/${index}`;
      const kept = input.role === "memory" || input.role === "block";
      if (input.role !== "cache" && !kept) {
        if (input.from !== undefined) return fault(`${place}/from`, input.from, `nothing for the role ${input.role}`);
        continue;
      }
      const source = made.get(input.from ?? "");
      if (source === undefined || (source.role === "block") !== kept) {
        const what = kept ? "a block" : "a cache";
        return fault(`${place}/from`, input.from ?? "nothing", `${what} of the prefill graph`);
      }
      if (source.dtype !== input.dtype) return fault(`${place}/dtype`, input.dtype, source.dtype);
      const window = (memory?.window ?? 0) * (memory?.tokens ?? 0);
      const shape = input.role === "memory" ? source.shape.with(-2, window) : source.shape;
      if (!Bun.deepEquals(shape, input.shape)) return fault(`${place}/shape`, input.shape, shape);
    }
  }
  return undefined;
}

/** Types of blocks, which a memory keeps. */
const FLOATS: readonly AnyPort["dtype"][] = ["f32", "f16", "bf16"];

function onePort(
  path: string,
  ports: readonly Graph["outputs"][number][],
  role: AnyPort["role"],
  shape: AnyPort["shape"],
): string | undefined {
  const index = ports.findIndex((port) => port.role === role);
  const port = ports[index];
  const count = ports.filter((one) => one.role === role).length;
  if (port === undefined || count > 1) return fault(path, `${count} with role ${role}`, "one");
  if (port.dtype !== "f32") return fault(`${path}/${index}/dtype`, port.dtype, "f32");
  return Bun.deepEquals(port.shape, shape) ? undefined : fault(`${path}/${index}/shape`, port.shape, shape);
}

function onlyRoles(path: string, ports: readonly AnyPort[], roles: readonly string[]): string | undefined {
  const index = ports.findIndex(({ role }) => !roles.includes(role));
  return index < 0 ? undefined : fault(`${path}/${index}/role`, ports[index]?.role, roles.join(" or "));
}
