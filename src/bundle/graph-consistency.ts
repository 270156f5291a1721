/** Whether the graphs of a manifest have the inputs and outputs that its facts ask for, and fit each other. */
import { fault, firstRepeated } from "./fault.ts";
import type { Graph, Manifest } from "./manifest.ts";

type Shape = AnyPort["shape"];

/** The first contradiction, as `contradiction` says it. */
export function checkGraphs(manifest: Manifest): string | undefined {
  return checkReaders(manifest) ?? checkOutputs(manifest) ?? checkDenoise(manifest) ?? checkSources(manifest);
}

/** Leading dimensions: of tensors with one row per observation, and of those that depend on the text. */
function leading({ memory, guidance }: Manifest): { rows: "batch" | 1; branches: "batch" | 1 | 2 } {
  if (memory === null) return { rows: "batch", branches: "batch" };
  return { rows: 1, branches: guidance === null ? 1 : 2 };
}

/** Tokens of the prompt, and of images and prompt without memory: numbers, or with buckets words. */
function lengths({ prompt, cameras, frames, image }: Manifest) {
  if (prompt.buckets) return { text: "prompt", prefix: "prefix" } as const;
  return { text: prompt.tokens_max, prefix: cameras.length * frames.later * image.tokens + prompt.tokens_max };
}

/** Inputs of prefill and extend. */
function checkReaders(manifest: Manifest): string | undefined {
  const { image, cameras, frames, graphs, state } = manifest;
  const { rows, branches } = leading(manifest);
  const { text } = lengths(manifest);
  for (const name of ["prefill", "extend"] as const) {
    const inputs = graphs[name]?.inputs;
    if (inputs === undefined) continue;
    const path = `/graphs/${name}/inputs`;
    const views = cameras.length * (name === "extend" ? frames.later : frames.first);
    const remembers: AnyPort["role"][] = name === "extend" ? ["memory", "memory_length"] : [];
    const wrong =
      onePort(path, inputs, "images", "f32", [rows, views, 3, image.height, image.width]) ??
      onePort(path, inputs, "tokens", "i64", [branches, text]) ??
      onePort(path, inputs, "token_mask", "bool", [branches, text]) ??
      statePort(path, inputs, [rows, state.width]) ??
      (name === "extend" ? onePort(path, inputs, "memory_length", "i64", [1]) : undefined) ??
      onlyRoles(path, inputs, ["images", "tokens", "token_mask", "state", ...remembers]);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Outputs of prefill and extend. Blocks have the tokens of the longest block. */
function checkOutputs(manifest: Manifest): string | undefined {
  const { memory, graphs } = manifest;
  const { branches } = leading(manifest);
  const { outputs } = graphs.prefill;
  const path = "/graphs/prefill/outputs";
  const roles = onlyRoles(path, outputs, memory === null ? ["cache"] : ["cache", "block"]);
  if (roles !== undefined) return roles;
  for (const [index, { shape, name, role, dtype }] of outputs.entries()) {
    const place = `${path}/${index}`;
    if (shape[0] !== branches || shape.slice(1).includes("batch"))
      return fault(`${place}/shape`, shape, `${branches} first and no other batch (${name})`);
    // Without memory a cache holds the prefix: the tokens of every frame, then the prompt.
    const { prefix } = lengths(manifest);
    const along = shape.length === 2 ? 1 : shape.length - 2;
    const words = shape.filter((size, index) => typeof size === "string" && index > 0 && index !== along);
    if (words.length > 0) return fault(`${place}/shape`, shape, `numbers beside rows and tokens (${name})`);
    if (memory === null && shape[along] !== prefix)
      return fault(`${place}/shape`, shape, `${prefix} prefix tokens (${name})`);
    if (role !== "block" || memory === null) continue;
    const tokens = Math.max(memory.first, memory.later) * memory.tokens;
    if (dtype !== "f32") return fault(`${place}/dtype`, dtype, "f32");
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

function checkDenoise(manifest: Manifest): string | undefined {
  const { action, state, graphs, memory } = manifest;
  const { rows, branches } = leading(manifest);
  const { inputs, outputs } = graphs.denoise;
  const path = "/graphs/denoise/inputs";
  const remembers: AnyPort["role"][] =
    memory === null ? [] : ["video_latent", "memory", "memory_length", "block", "block_length"];
  const video = inputs.find(({ role }) => role === "video_latent");
  return (
    onePort(path, inputs, "latent", "f32", [rows, action.rows, action.width]) ??
    onePort(path, inputs, "time", "f32", [1]) ??
    statePort(path, inputs, [rows, state.width]) ??
    (memory === null ? undefined : onePort(path, inputs, "memory_length", "i64", [1])) ??
    (memory === null ? undefined : onePort(path, inputs, "block_length", "i64", [1])) ??
    onlyRoles(path, inputs, ["latent", "time", "state", "cache", ...remembers]) ??
    onePort("/graphs/denoise/outputs", outputs, "velocity", "f32", [branches, action.rows, action.width]) ??
    (manifest.guidance?.apply.includes("video") && !video
      ? fault("/guidance/apply", manifest.guidance.apply, "no video, without a video latent")
      : undefined) ??
    (video &&
      (onePort(path, inputs, "video_latent", "f32", [1, ...video.shape.slice(1)]) ??
        onePort("/graphs/denoise/outputs", outputs, "video_velocity", "f32", [branches, ...video.shape.slice(1)]))) ??
    onlyRoles("/graphs/denoise/outputs", outputs, video ? ["velocity", "video_velocity"] : ["velocity"])
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

/** The state tensor is optional. */
function statePort(path: string, ports: readonly AnyPort[], shape: Shape): string | undefined {
  return ports.some(({ role }) => role === "state") ? onePort(path, ports, "state", "f32", shape) : undefined;
}

type AnyPort = Graph["inputs"][number] | Graph["outputs"][number];

function onePort(
  path: string,
  ports: readonly AnyPort[],
  role: AnyPort["role"],
  dtype: AnyPort["dtype"],
  shape: Shape,
): string | undefined {
  const index = ports.findIndex((port) => port.role === role);
  const port = ports[index];
  const count = ports.filter((one) => one.role === role).length;
  if (port === undefined || count > 1) return fault(path, `${count} with role ${role}`, "one");
  if (port.dtype !== dtype) return fault(`${path}/${index}/dtype`, port.dtype, dtype);
  return Bun.deepEquals(port.shape, shape) ? undefined : fault(`${path}/${index}/shape`, port.shape, shape);
}

function onlyRoles(path: string, ports: readonly AnyPort[], roles: readonly string[]): string | undefined {
  const index = ports.findIndex(({ role }) => !roles.includes(role));
  return index < 0 ? undefined : fault(`${path}/${index}/role`, ports[index]?.role, roles.join(" or "));
}
