/**
 * What a manifest says in one place against what it says in another: shapes, names, lengths. Checked once, before anything is loaded;
 * the code that runs a chunk has no branch on a shape.
 */
import { LIMITS } from "../limits.ts";
import type { Manifest, NormStats } from "./manifest.ts";

type Port = Manifest["graphs"]["prefill"]["inputs"][number];
type Shape = Port["shape"];
type Role = Port["role"];

/** The first contradiction, with its JSON path, what was found and what was expected; undefined when there is none. */
export function contradiction(manifest: Manifest): string | undefined {
  for (const check of [
    checkFacts,
    checkMemory,
    checkColumns,
    checkPrompt,
    checkReaders,
    checkOutputs,
    checkDenoise,
    checkSources,
    checkListed,
  ]) {
    const fault = check(manifest);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The first column that `norm.json` has no statistics for. */
export function missingStatistic(manifest: Manifest, norm: NormStats): string | undefined {
  for (const side of ["state", "action"] as const) {
    for (const [index, column] of manifest[side].columns.entries()) {
      if (column.norm === "none") continue;
      for (const name of column.norm === "quantile" ? (["q01", "q99"] as const) : (["mean", "std"] as const)) {
        const length = norm[side][name]?.length ?? 0;
        if (length <= index)
          return fault(`/${side}/${name}`, `${length} values`, `one for column ${index} (${column.name})`);
      }
      if (column.norm !== "quantile") continue;
      const low = norm[side].q01?.[index] ?? 0;
      const high = norm[side].q99?.[index] ?? 0;
      if (low >= high) return fault(`/${side}/q99/${index}`, high, `more than q01, ${low}`);
    }
  }
  return undefined;
}

function fault(path: string, found: unknown, expected: unknown): string {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return `${path}: found ${text(found)}, expected ${text(expected)}`;
}

function checkFacts({ cameras, frames, stateful, flow, action }: Manifest): string | undefined {
  const repeated = firstRepeated(cameras);
  if (repeated !== undefined) return fault(`/cameras/${repeated}`, cameras[repeated], "a name that stands once");
  const most = cameras.length * Math.max(frames.first, frames.later);
  if (most > LIMITS.observationFramesMax)
    return fault("/frames", `${most} in all`, `${LIMITS.observationFramesMax} at most`);
  // Without memory nothing tells a first request from a later one.
  if (!stateful && frames.first !== frames.later) return fault("/frames/first", frames.first, frames.later);
  if (frames.first > frames.later) return fault("/frames/first", frames.first, `${frames.later} at most, as later`);
  if (flow.shift !== 1 && [flow.t_start, flow.t_end].some((t) => t < 0 || t > 1))
    return fault("/flow/shift", flow.shift, "1, or times from 0 to 1");
  if (flow.t_start === flow.t_end) return fault("/flow/t_end", flow.t_end, "another time than t_start");
  const values = action.rows * action.columns.length;
  if (values > LIMITS.chunkValuesMax) return fault("/action", `${values} values`, `${LIMITS.chunkValuesMax} at most`);
  return undefined;
}

/** Memory, and what goes with it and only with it. */
function checkMemory({ memory, stateful, batch, graphs, guidance, cameras, image }: Manifest): string | undefined {
  const remembers = memory !== null;
  if (stateful !== remembers)
    return fault("/stateful", stateful, `${remembers}, as memory is ${remembers ? "" : "not "}there`);
  if (remembers !== (graphs.extend !== undefined)) {
    return fault(
      "/graphs/extend",
      remembers ? "nothing" : "a graph",
      remembers ? "a graph" : "nothing, without memory",
    );
  }
  if (!remembers) return guidance === null ? undefined : fault("/guidance", guidance, "null, without memory");
  if (batch !== 1) return fault("/batch", batch, "1, with memory");
  const tokens = cameras.length * image.tokens;
  if (memory.tokens !== tokens) return fault("/memory/tokens", memory.tokens, `${tokens}, those of all cameras`);
  for (const name of ["first", "later"] as const) {
    if (memory[name] > memory.window)
      return fault(`/memory/${name}`, memory[name], `${memory.window} at most, the window`);
  }
  return undefined;
}

function checkColumns({ state, action }: Manifest): string | undefined {
  const refused = state.kind === "joint" ? "cartesian_position" : "joint_position";
  for (const [index, column] of state.columns.entries()) {
    if (column.from === refused)
      return fault(`/state/columns/${index}/from`, column.from, `not ${refused} in ${state.kind} state`);
  }
  const sources = state.columns.map(({ from, index }) => `${from}[${index}]`);
  const twice = firstRepeated(sources);
  if (twice !== undefined) return fault(`/state/columns/${twice}`, sources[twice], "a value that is read once");
  for (const [path, columns] of [
    ["/state/columns", state.columns] as const,
    ["/action/columns", action.columns] as const,
  ]) {
    const repeated = firstRepeated(columns.map(({ name }) => name));
    if (repeated !== undefined)
      return fault(`${path}/${repeated}/name`, columns[repeated]?.name, "a name that stands once");
  }
  if (state.columns.length > state.width)
    return fault("/state/columns", `${state.columns.length} columns`, `${state.width} at most`);
  for (const [index, start] of action.rotation6d.entries()) {
    const free =
      start + 6 <= action.columns.length && action.rotation6d.every((one) => one <= start - 6 || one >= start);
    const alone = action.rotation6d.indexOf(start) === index;
    if (!free || !alone) return fault(`/action/rotation6d/${index}`, start, "six columns of its own");
  }
  if (action.columns.length > action.width)
    return fault("/action/columns", `${action.columns.length} columns`, `${action.width} at most`);
  for (const [index, { min, max, relative_to: base }] of action.columns.entries()) {
    if (min >= max) return fault(`/action/columns/${index}/max`, max, `more than min, ${min}`);
    if (base !== null && base >= state.columns.length) {
      return fault(`/action/columns/${index}/relative_to`, base, `less than ${state.columns.length} state columns`);
    }
  }
  return undefined;
}

function checkPrompt({ prompt, state }: Manifest): string | undefined {
  const instructions = prompt.parts.filter(({ kind }) => kind === "instruction" || kind === "template").length;
  if (instructions !== 1) return fault("/prompt/parts", `${instructions} instructions`, "one");
  let fixed = 0;
  for (const { kind } of prompt.parts) {
    if (kind === "token") fixed += 1;
    // Each number of a template is a token at least.
    if (kind === "state_tokens" || kind === "template") fixed += state.columns.length;
  }
  if (fixed >= prompt.tokens_max)
    return fault("/prompt/tokens_max", prompt.tokens_max, `more than the ${fixed} tokens without instruction`);
  return undefined;
}

/** Leading dimension of what holds observations, and of what depends on the text as well. */
function leading({ memory, guidance }: Manifest): { rows: "batch" | 1; branches: "batch" | 1 | 2 } {
  if (memory === null) return { rows: "batch", branches: "batch" };
  return { rows: 1, branches: guidance === null ? 1 : 2 };
}

/** Prefill and extend: what they are fed. */
function checkReaders(manifest: Manifest): string | undefined {
  const { image, prompt, cameras, frames, graphs, state } = manifest;
  const { rows, branches } = leading(manifest);
  const readers = [
    ["prefill", graphs.prefill, frames.first] as const,
    ["extend", graphs.extend, frames.later] as const,
  ];
  for (const [name, graph, perCamera] of readers) {
    if (graph === undefined) continue;
    const path = `/graphs/${name}/inputs`;
    const views = cameras.length * perCamera;
    const remembers: Role[] = name === "extend" ? ["memory", "memory_length"] : [];
    const wrong =
      onePort(path, graph.inputs, "images", "f32", [rows, views, 3, image.height, image.width]) ??
      onePort(path, graph.inputs, "tokens", "i64", [branches, prompt.tokens_max]) ??
      onePort(path, graph.inputs, "token_mask", "bool", [branches, prompt.tokens_max]) ??
      statePort(path, graph.inputs, [rows, state.width]) ??
      (name === "extend" ? onePort(path, graph.inputs, "memory_length", "i64", [1]) : undefined) ??
      onlyRoles(path, graph.inputs, ["images", "tokens", "token_mask", "state", ...remembers]);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Prefill and extend: what they give. Caches have a leading dimension of their own kind; blocks the longest block's tokens. */
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
    // Without memory a cache is the prefix: tokens of every frame, then the prompt.
    const prefix = manifest.cameras.length * manifest.frames.later * manifest.image.tokens + manifest.prompt.tokens_max;
    if (memory === null && shape[shape.length === 2 ? 1 : shape.length - 2] !== prefix)
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

function sameOutputs(one: readonly AnyPort[], other: readonly AnyPort[]): boolean {
  return (
    one.length === other.length &&
    one.every((port) =>
      other.some(
        ({ name, role, dtype, shape }) =>
          name === port.name && role === port.role && dtype === port.dtype && sameShape(shape, port.shape),
      ),
    )
  );
}

function checkDenoise(manifest: Manifest): string | undefined {
  const { action, state, graphs, memory } = manifest;
  const { rows, branches } = leading(manifest);
  const { inputs, outputs } = graphs.denoise;
  const path = "/graphs/denoise/inputs";
  const remembers: Role[] = memory === null ? [] : ["video_latent", "memory", "memory_length", "block", "block_length"];
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

/** Whatever is read from elsewhere comes from an output of the prefill graph, with its type and shape. */
function checkSources({ graphs, memory }: Manifest): string | undefined {
  const made = new Map(graphs.prefill.outputs.map((output) => [output.name, output]));
  for (const [name, inputs] of [
    ["denoise", graphs.denoise.inputs] as const,
    ["extend", graphs.extend?.inputs ?? []] as const,
  ]) {
    for (const [index, input] of inputs.entries()) {
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
      if (!sameShape(shape, input.shape)) return fault(`${place}/shape`, input.shape, shape);
    }
  }
  return undefined;
}

/** A state tensor may be there. */
function statePort(path: string, ports: readonly AnyPort[], shape: Shape): string | undefined {
  return ports.some(({ role }) => role === "state") ? onePort(path, ports, "state", "f32", shape) : undefined;
}

/** Every file that the manifest names elsewhere is in `files`, once, and no path leaves the folder. */
function checkListed({ graphs, tokenizer, norm, parity, files }: Manifest): string | undefined {
  const paths = files.map(({ path }) => path);
  const repeated = firstRepeated(paths);
  if (repeated !== undefined) return fault(`/files/${repeated}/path`, paths[repeated], "a path that stands once");
  const leaving = paths.findIndex((path) => path.split("/").some((part) => part === "." || part === ".."));
  if (leaving >= 0) return fault(`/files/${leaving}/path`, paths[leaving], "a path inside the bundle");
  const named = [
    ["/graphs/prefill/file", graphs.prefill.file],
    ["/graphs/extend/file", graphs.extend?.file ?? graphs.prefill.file],
    ["/graphs/denoise/file", graphs.denoise.file],
    ["/tokenizer", tokenizer],
    ["/norm", norm],
    ["/parity/file", parity.file],
  ] as const;
  const unlisted = named.find(([, file]) => !paths.includes(file));
  return unlisted && fault(unlisted[0], unlisted[1], "a path that is listed in /files");
}

interface AnyPort {
  readonly name: string;
  readonly role: string;
  readonly dtype: string;
  readonly shape: Shape;
}

function onePort(
  path: string,
  ports: readonly AnyPort[],
  role: string,
  dtype: string,
  shape: Shape,
): string | undefined {
  const index = ports.findIndex((port) => port.role === role);
  const port = ports[index];
  if (port === undefined || ports.some((other) => other !== port && other.role === role)) {
    return fault(path, `${ports.filter((other) => other.role === role).length} with role ${role}`, "one");
  }
  if (port.dtype !== dtype) return fault(`${path}/${index}/dtype`, port.dtype, dtype);
  return sameShape(port.shape, shape) ? undefined : fault(`${path}/${index}/shape`, port.shape, shape);
}

function onlyRoles(path: string, ports: readonly AnyPort[], roles: readonly string[]): string | undefined {
  const index = ports.findIndex(({ role }) => !roles.includes(role));
  return index < 0 ? undefined : fault(`${path}/${index}/role`, ports[index]?.role, roles.join(" or "));
}

function sameShape(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((dim, axis) => dim === other[axis]);
}

function firstRepeated(values: readonly string[]): number | undefined {
  const index = values.findIndex((value, at) => values.indexOf(value) < at);
  return index < 0 ? undefined : index;
}
