/** A manifest as text: the answer to a request without images, and `tendon bundle show`. */
import type { Manifest } from "./manifest.ts";

/** Shown wherever a user could meet a reference bundle. */
export const REFERENCE_WARNING =
  "Reference bundle: its weights are random numbers, nothing was trained. Its rows mean nothing: never move a real arm with them.";

/** The same for the device `echo`, which serves a bundle without its model. */
export const ECHO_WARNING =
  "Device echo: no model runs, every row is zeros. Its rows mean nothing: never move a real arm with them.";

/** Why rows of this bundle on this device must never move a real arm; undefined where they may. */
export function armWarning({ reference }: Pick<Manifest, "reference">, device?: string): string | undefined {
  if (device === "echo") return ECHO_WARNING;
  return reference ? REFERENCE_WARNING : undefined;
}

/** Pixels that every frame must have, for a model that resizes none; null for any. */
export function exactSize({ image: { resize, width, height } }: Pick<Manifest, "image">) {
  return resize === "exact" ? { width, height } : null;
}

/** What a robot sends to this model and gets back (contract section 2). Several lines, no trailing line break; a warning is the last one. */
export function describe(manifest: Manifest, warning = armWarning(manifest)): string {
  const { id, title, stateful, cameras, frames, action } = manifest;
  const exact = exactSize(manifest);
  const size = exact ? ` of exactly ${exact.width} x ${exact.height} pixels` : "";
  const lines = [
    `${id}: ${title}.`,
    `Cameras, in this order: ${cameras.join(", ")}.`,
    `Frames per camera: ${frames.first} on a session's first request, ${frames.later} on later ones, oldest first, JPEG${size}.`,
    `State: ${manifest.state.kind}; ${wireArrays(manifest).join("; ")}.`,
    `Rows: ${action.rows} per chunk, dt 1/${action.hz} s.`,
    `Actions: action_dim ${action.columns.length}, action_space ${action.space}, absolute, in this order: ${columnList(action.columns)}.`,
    stateful
      ? "Keeps memory over an episode: every request with images needs a session_id."
      : "Keeps no memory between requests.",
  ];
  return (warning === undefined ? lines : [...lines, warning]).join("\n");
}

/** How weights are kept. */
export function weightWords({ compute, weights }: Pick<Manifest, "compute" | "weights">): string {
  return weights ?? compute ?? "f32";
}

/** For an operator: `describe`, and the content of the bundle. Ends with a line break. */
export function show(manifest: Manifest): string {
  const { graphs, image, prompt, flow, files } = manifest;
  const rows: [string, string][] = [
    ["licence", manifest.licence],
    ["source", manifest.source],
    ...(manifest.origin?.files ?? []).map(({ path, sha256 }, index): [string, string] => [
      index === 0 ? "origin" : "",
      `${sha256}  ${path}${index === 0 ? `, ${manifest.origin?.layout}` : ""}`,
    ]),
    ["export", manifest.export_id],
    ["image", `${fitting(image)}, ${image.tokens} tokens a frame`],
    ["prompt", promptWords(prompt)],
    [
      "flow",
      flow === null ? "none: one graph gives the rows" : `t ${flow.t_start} to ${flow.t_end} in ${flow.steps} steps`,
    ],
    ["batch", `${manifest.batch} observations at most`],
    ["weights", weightWords(manifest)],
    ...(manifest.compute ? [["compute", `${manifest.compute}, a build for GPUs`] as [string, string]] : []),
    [
      "parity",
      manifest.parity.unproved
        ? "none: nobody has computed its rows, so that it is never served, only measured"
        : `rows within ${manifest.parity.tolerance} of the expected ones, in their units, on every device that serves`,
    ],
    ...manifest.action.columns.map((column, index): [string, string] => [index === 0 ? "limits" : "", limits(column)]),
    ...Object.entries(graphs).flatMap(([name, { inputs, outputs }]): [string, string][] => [
      [name, `in   ${inputs.map(port).join(", ")}`],
      ["", `out  ${outputs.map(port).join(", ")}`],
    ]),
    ...files.map(({ path, size, sha256 }, index): [string, string] => [
      index === 0 ? "files" : "",
      `${sha256.slice(0, 16)}  ${String(size).padStart(10)}  ${path}`,
    ]),
  ];
  return `${describe(manifest)}\n\n${rows.map(([name, text]) => `${name.padEnd(8)} ${text}`).join("\n")}\n`;
}

/** `joint_position: 12 values (left_joint_1 … in rad)` for each array of `robot_state` that the model reads. */
function wireArrays({ state }: Manifest): string[] {
  return [...Map.groupBy(state.columns, ({ from }) => from)].map(([name, columns]) => {
    const ordered = columns.toSorted((one, other) => one.index - other.index);
    return `${name}: ${columns.length} ${columns.length === 1 ? "value" : "values"} (${columnList(ordered)})`;
  });
}

/** `224 x 224, pad to bottom_right, pillow-bilinear`; a filter and a place are not in each. */
function fitting({ width, height, resize, place, filter }: Manifest["image"]): string {
  const placed = place === undefined ? resize : `${resize} to ${place}`;
  return [`${width} x ${height}`, placed, ...(filter ? [filter] : [])].join(", ");
}

function promptWords(prompt: Manifest["prompt"]): string {
  if (prompt === null) return "none: it reads no instruction";
  const padded = prompt.buckets === undefined ? "" : `; padded to ${prompt.buckets.join(", ")} or that`;
  return `${prompt.tokens_max} tokens at most, state tokens included${padded}`;
}

/** `left_joint_1 [rad]: -2.6 to 3.1, row 0 at most 2 from the state, 3 from row to row`. */
function limits(column: Manifest["action"]["columns"][number]): string {
  const { min, max, max_jump: jump, max_step: step } = column;
  const jumps = jump === undefined ? "" : `, row 0 at most ${jump} from the state`;
  const steps = step === undefined ? "" : `, at most ${step} from row to row`;
  return `${columnList([column])}: ${min} to ${max}${jumps}${steps}`;
}

function columnList(columns: readonly { readonly name: string; readonly unit: string }[]): string {
  return columns.map(({ name, unit }) => (unit === "1" ? name : `${name} [${unit}]`)).join(", ");
}

function port({ name, dtype, shape }: { name: string; dtype: string; shape: readonly (string | number)[] }): string {
  return `${name} ${dtype}[${shape.join(",")}]`;
}

/** What is said of a model whose sessions do not lie where they could. */
export function hostMemoryNote(reason: string): string {
  return `the memory of its sessions lies on the host, from where each observation copies it: ${reason}`;
}

interface DeviceWeights {
  readonly sharedBytes: number;
  readonly ownBytes: number;
  readonly reason?: string | undefined;
}

/** What lies of a bundle's weight files in the memory of devices, as a part of a sentence; undefined where there are none on a device: on a CPU, or of a bundle whose graphs hold their weights. */
export function deviceWeightWords({ sharedBytes, ownBytes, reason }: DeviceWeights): string | undefined {
  const shared = `${megabytes(sharedBytes)} of weights on the device once for all sessions`;
  const own = `${megabytes(ownBytes)} of weights copied by its sessions${reason === undefined ? "" : ` (${reason})`}`;
  const parts = [...(sharedBytes > 0 ? [shared] : []), ...(ownBytes > 0 ? [own] : [])];
  return parts.length === 0 ? undefined : parts.join(", ");
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
