/**
 * What a manifest says in one place against what it says in another: shapes, names, lengths. Checked once, before anything is loaded;
 * the code that runs a chunk has no branch on a shape.
 */
import { LIMITS } from "../limits.ts";
import type { Manifest, NormStats } from "./manifest.ts";

type Port = Manifest["graphs"]["prefill"]["inputs"][number];
type Shape = Port["shape"];

/** The first contradiction, with its JSON path, what was found and what was expected; undefined when there is none. */
export function contradiction(manifest: Manifest): string | undefined {
  for (const check of [checkFacts, checkColumns, checkPrompt, checkPrefill, checkDenoise, checkListed]) {
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
  if (flow.t_start === flow.t_end) return fault("/flow/t_end", flow.t_end, "another time than t_start");
  const values = action.rows * action.columns.length;
  if (values > LIMITS.chunkValuesMax) return fault("/action", `${values} values`, `${LIMITS.chunkValuesMax} at most`);
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
  const instructions = prompt.parts.filter(({ kind }) => kind === "instruction").length;
  if (instructions !== 1) return fault("/prompt/parts", `${instructions} instructions`, "one");
  let fixed = 0;
  for (const { kind } of prompt.parts) {
    if (kind === "token") fixed += 1;
    if (kind === "state_tokens") fixed += state.columns.length;
  }
  if (fixed >= prompt.tokens_max)
    return fault("/prompt/tokens_max", prompt.tokens_max, `more than the ${fixed} tokens without instruction`);
  return undefined;
}

/** Prefix tokens: those of every frame, then the prompt. */
function prefixLength({ cameras, frames, image, prompt }: Manifest): number {
  return cameras.length * frames.later * image.tokens + prompt.tokens_max;
}

function checkPrefill(manifest: Manifest): string | undefined {
  const { image, prompt, cameras, frames, graphs } = manifest;
  const path = "/graphs/prefill/inputs";
  const views = cameras.length * frames.later;
  return (
    onePort(path, graphs.prefill.inputs, "images", "f32", ["batch", views, 3, image.height, image.width]) ??
    onePort(path, graphs.prefill.inputs, "tokens", "i64", ["batch", prompt.tokens_max]) ??
    onePort(path, graphs.prefill.inputs, "token_mask", "bool", ["batch", prompt.tokens_max]) ??
    onlyRoles(path, graphs.prefill.inputs, ["images", "tokens", "token_mask"]) ??
    onlyRoles("/graphs/prefill/outputs", graphs.prefill.outputs, ["cache"]) ??
    checkCaches(manifest)
  );
}

/** Every cache has one row per observation and, one axis before its last or as its last, the prefix. */
function checkCaches(manifest: Manifest): string | undefined {
  const outputs = manifest.graphs.prefill.outputs;
  const length = prefixLength(manifest);
  for (const [index, { shape, name }] of outputs.entries()) {
    const place = `/graphs/prefill/outputs/${index}/shape`;
    if (shape[0] !== "batch" || shape.slice(1).includes("batch"))
      return fault(place, shape, `batch first and only there (${name})`);
    if (shape[shape.length === 2 ? 1 : shape.length - 2] !== length)
      return fault(place, shape, `${length} prefix tokens (${name})`);
  }
  const repeated = firstRepeated(outputs.map(({ name }) => name));
  if (repeated === undefined) return undefined;
  return fault(`/graphs/prefill/outputs/${repeated}/name`, outputs[repeated]?.name, "a name that stands once");
}

function checkDenoise(manifest: Manifest): string | undefined {
  const { action, graphs } = manifest;
  const rows: Shape = ["batch", action.rows, action.width];
  const path = "/graphs/denoise/inputs";
  const simple =
    onePort(path, graphs.denoise.inputs, "latent", "f32", rows) ??
    onePort(path, graphs.denoise.inputs, "time", "f32", [1]) ??
    onlyRoles(path, graphs.denoise.inputs, ["latent", "time", "cache"]) ??
    onePort("/graphs/denoise/outputs", graphs.denoise.outputs, "velocity", "f32", rows) ??
    onlyRoles("/graphs/denoise/outputs", graphs.denoise.outputs, ["velocity"]);
  if (simple !== undefined) return simple;
  const made = new Map(graphs.prefill.outputs.map((output) => [output.name, output]));
  for (const [index, input] of graphs.denoise.inputs.entries()) {
    if (input.role !== "cache") continue;
    const source = made.get(input.from ?? "");
    if (source === undefined)
      return fault(`${path}/${index}/from`, input.from ?? "nothing", "an output of the prefill graph");
    if (source.dtype !== input.dtype) return fault(`${path}/${index}/dtype`, input.dtype, source.dtype);
    if (!sameShape(source.shape, input.shape)) return fault(`${path}/${index}/shape`, input.shape, source.shape);
  }
  return undefined;
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
