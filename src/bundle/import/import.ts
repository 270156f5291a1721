/** `tendon bundle import`: a publisher's folder becomes a bundle, whole or not at all. */
import { basename, dirname, join, relative } from "node:path";
import { Type } from "@sinclair/typebox";
import { FileShort, readText } from "../../std/file.ts";
import { fileDigest } from "../../std/file-digest.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { inTemporaryFolder } from "../../std/temporary-folder.ts";
import type { BundleFacts } from "../architecture.ts";
import { CHUNK, Draft } from "../draft.ts";
import { buildGraphs, sizeMismatch } from "../families.ts";
import { standsAt } from "../folder.ts";
import { BundleFields, type Manifest, type NormStats, type Parity } from "../manifest.ts";
import { closed, readJson, reason, schemaFault } from "../schema.ts";
import { idFault } from "../served-id.ts";
import type { ComputeRows } from "../vectors.ts";
import type { Progress } from "../weight-file.ts";
import { type Build, DEFAULT_BUILD, HALF_BUILD, type Half, type Precision } from "../weights.ts";
import { ACT } from "./act-lerobot.ts";
import { Checkpoint, type Scan } from "./checkpoint.ts";
import { CheckpointWeights, tensorsOf } from "./checkpoint-weights.ts";
import type { Described } from "./described.ts";
import type { Found, Layout } from "./found.ts";
import { GOLDEN, type GoldenFiles, readGoldenFiles } from "./golden-files.ts";
import { ownRows, template } from "./own-vectors.ts";
import { plainName } from "./paligemma-names.ts";
import { readPi05LeRobot } from "./pi05-lerobot.ts";
import { readPi05OpenPi } from "./pi05-openpi.ts";
import { type Robot, readRobot } from "./robot-file.ts";
import { isFloat, type Stored } from "./safetensors.ts";
import { readSmolVla } from "./smolvla.ts";
import { type PublishedTokenizer, readTokenizer, tokenizerFault } from "./tokenizer.ts";

/** LeRobot's layouts, by the `type` in `config.json`. */
const LEROBOT: Readonly<Record<string, Layout>> = {
  pi05: { plainName, read: readPi05LeRobot },
  act: ACT,
  smolvla: { plainName: (name) => name, read: readSmolVla },
};
const OPENPI: Layout = { plainName, read: readPi05OpenPi };
const ADVICE = "name the folder of a checkpoint";
/** Tensors that a problem names. */
const FAULTS_MAX = 100;

/** Largest difference that a parity check allows of a normalised value, and of an int8 one. */
const TOLERANCES = { f32: 1e-4, bf16: 1e-4, int8: 0.2 } as const;
const HALF_TOLERANCES = { f16: 0.02, bf16: 0.05 } as const;

export interface ImportOptions {
  readonly id: string;
  /** Path of the robot file. */
  readonly robot: string;
  readonly golden?: string;
  /** Path of the tokenizer, where the folder has none. */
  readonly tokenizer?: string;
  readonly precision: Precision;
  readonly compute?: Half;
  readonly computeRows: ComputeRows;
  /** Pictures for the parity vectors, where no golden case has some: of a size, where the policy takes no other. */
  readonly draw: (size?: {
    readonly width: number;
    readonly height: number;
  }) => Promise<readonly Uint8Array[] | Problem>;
  /** Called while the checkpoint is read and while the weights are written, each with its own total. */
  readonly progress?: Progress;
}

/** What is written, but for the weights. */
interface Prepared {
  readonly dir: string;
  readonly found: Found;
  readonly facts: BundleFacts;
  readonly described: Described;
  readonly tokenizer: (PublishedTokenizer & { readonly path: string }) | undefined;
  readonly tensors: ReadonlyMap<string, Stored>;
  readonly golden: GoldenFiles | undefined;
  readonly vectors: Parity;
  readonly pictures: ReadonlyMap<string, Uint8Array>;
}

/** Imports `dir` into `out`, replacing a bundle that is there. */
export async function importBundle(dir: string, out: string, options: ImportOptions): Promise<Manifest | Problem> {
  const standing = await standsAt(out);
  if (standing instanceof Problem) return standing;
  const checkpoint = await Checkpoint.open(dir);
  if (checkpoint instanceof Problem) return checkpoint;
  try {
    const prepared = await prepare(dir, checkpoint, options);
    if (prepared instanceof Problem) return prepared;
    return await written(prepared, checkpoint, out, options);
  } catch (error) {
    // Values are read in many places: a file may be cut short or its disk fail in any of them.
    if (!(error instanceof FileShort) && (error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return new Problem(`${dir} cannot be read (${reason(error)}); fetch the checkpoint again`);
  } finally {
    checkpoint.close();
  }
}

async function prepare(dir: string, checkpoint: Checkpoint, options: ImportOptions): Promise<Prepared | Problem> {
  const layout = await layoutOf(dir);
  if (layout instanceof Problem) return layout;
  const tensors = plainTensors(dir, checkpoint, layout);
  if (tensors instanceof Problem) return tensors;
  const licence = await licenceIn(dir);
  if (licence instanceof Problem) return licence;
  const found = await layout.read(dir, tensors, licence);
  if (found instanceof Problem) return found;
  const unfit = unfitNames(tensors, found);
  if (unfit.length > 0) return wrongTensors(dir, found, unfit);
  const robot = await readRobot(options.robot, found.policy);
  if (robot instanceof Problem) return robot;
  const tokenizer = await tokenizerOf(dir, found, options.tokenizer);
  if (tokenizer instanceof Problem) return tokenizer;
  const described = found.describe(robot);
  if (described instanceof Problem) return described;
  const facts: BundleFacts = {
    id: options.id,
    title: robot.title ?? `${found.title}, imported from ${basename(dir)}`,
    licence: robot.licence,
    source: `Imported from a checkpoint in the layout of ${found.layout}; the manifest's origin has the digests of its files.`,
    ...described.facts,
    cameras: robot.cameras.map(({ name }) => name),
  };
  const wrong =
    schemaFault(closed(BundleFields), facts) ?? sizeMismatch(facts, described.architecture, tokenizer?.vocabulary ?? 0);
  if (wrong !== undefined)
    return new Problem(`${dir} makes no bundle: ${wrong}; correct ${options.robot} or the checkpoint`);
  const wrongId = idFault(facts);
  if (wrongId !== undefined) return new Problem(`--id: ${wrongId}`, EXIT.usage);
  const golden = options.golden === undefined ? undefined : await readGoldenFiles(options.golden, robot, facts);
  if (golden instanceof Problem) return golden;
  const pictures = await picturesOf(robot, facts.image, golden, options);
  if (pictures instanceof Problem) return pictures;
  const vectors = template(facts, described.norm, pictures.names, golden?.first);
  return { ...{ dir, found, facts, described, tokenizer, tensors, golden, vectors }, pictures: pictures.files };
}

async function written(
  { dir, found, facts, described, tokenizer, tensors, golden, vectors, pictures }: Prepared,
  checkpoint: Checkpoint,
  out: string,
  { precision, compute, computeRows, progress = () => {} }: ImportOptions,
): Promise<Manifest | Problem> {
  // Pictures that are not rounded are no pixels.
  const unrounded = facts.image.filter === "torch-bilinear" && ({ frames: "f32" } as const);
  const built: Build = compute ? { ...HALF_BUILD, ...unrounded, compute } : { ...DEFAULT_BUILD, precision };
  const graphsOf = (build: Build) => {
    const weights = new CheckpointWeights(build, tensors, found.table);
    return { weights, graphs: buildGraphs(facts, described.architecture, tokenizer?.vocabulary ?? 0, weights) };
  };
  // Shapes first, without int8, which reads whole tensors: no memory is taken for a size that no tensor has.
  const { faults } = graphsOf(DEFAULT_BUILD).weights;
  if (faults.length > 0) return wrongTensors(dir, found, faults);
  const { weights, graphs } = graphsOf(built);
  let done = 0;
  const scan = await checkpoint.scan((bytes) => {
    done += bytes;
    progress(done, checkpoint.bytes);
  });
  const stored = (name: string) => tensors.get(name)?.name ?? name;
  const notFinite = [...weights.used]
    .map(stored)
    .flatMap((name) => (scan.notFinite.has(name) ? [`${name} has a value that is not finite`] : []));
  if (notFinite.length > 0) return wrongTensors(dir, found, notFinite);
  const isRounded =
    precision === "int8" || (compute === undefined && [...weights.halved].some((name) => scan.finer.has(stored(name))));

  const common = {
    ...{
      facts,
      norm: described.norm,
      ...(tokenizer && { tokenizer: tokenizer.json }),
      origin: await originOf(dir, found, scan, tokenizer?.path),
    },
    proof: {
      tolerance: toleranceOf(precision, compute, facts, described.norm),
      drawn: true as const,
      ...(golden && { golden: { ...GOLDEN, ...(isRounded && { rounded: true as const }) } }),
    },
    parity: new Map([
      ...pictures,
      ...(golden?.files ?? []),
      [CHUNK, new TextEncoder().encode(JSON.stringify(vectors))],
    ]),
  };
  const draft = new Draft({ ...common, graphs, precision, ...(compute && { compute }) });
  const fault = draft.fault();
  if (fault !== undefined)
    return new Problem(`${dir} makes no bundle: ${fault}; correct the robot file or the checkpoint`);
  const prove = async (manifest: Manifest, folder: string) => {
    // Every value has been made by now.
    if (weights.notFinite.size > 0) return wrongTensors(dir, found, [...weights.notFinite]);
    if (compute === undefined) return await ownRows(manifest, manifest, folder, vectors, computeRows);
    // No CPU computes all types of GPUs: the rows are those of the checkpoint in float32.
    return await inTemporaryFolder(join(dirname(out), ".exact-"), async (parent) => {
      const beside = join(parent, "bundle");
      const { graphs: exactGraphs } = graphsOf(DEFAULT_BUILD);
      const exact = await new Draft({ ...common, graphs: exactGraphs, precision: "f32" }).write(beside, { progress });
      return exact instanceof Problem ? exact : await ownRows(manifest, exact, beside, vectors, computeRows);
    });
  };
  return await draft.write(out, { progress, prove });
}

async function layoutOf(dir: string): Promise<Layout | Problem> {
  const path = join(dir, "config.json");
  const config = await readJson(path, Type.Object({ type: Type.Optional(Type.String()) }), ADVICE);
  if (config instanceof Problem) return config;
  if (config.type === undefined) return OPENPI;
  const layout = Object.hasOwn(LEROBOT, config.type) ? LEROBOT[config.type] : undefined;
  const known = Object.keys(LEROBOT).join(", ");
  return (
    layout ?? new Problem(`${path}: /type is ${config.type}, expected ${known}, or none in openpi's layout; ${ADVICE}`)
  );
}

/** The tensors of a checkpoint by the names that tables have for them. */
function plainTensors(dir: string, { tensors }: Checkpoint, { plainName }: Layout): Map<string, Stored> | Problem {
  const plain = new Map<string, Stored>();
  for (const [name, stored] of tensors) {
    const twice = plain.get(plainName(name));
    if (twice) return new Problem(`${dir} has ${twice.name} and ${name}, two names of one tensor; ${ADVICE}`);
    plain.set(plainName(name), stored);
  }
  return plain;
}

/** Tensors that are missing, and those that the family has not. */
function unfitNames(tensors: ReadonlyMap<string, Stored>, { table, isUnused, layout }: Found): string[] {
  const needed = new Set([...table.values()].flatMap((parts) => parts.flatMap(tensorsOf)));
  const missing = [...needed].filter((name) => !tensors.has(name)).map((name) => `${name} is missing`);
  const extra = [...tensors].filter(([name, stored]) => isFloat(stored) && !needed.has(name) && !isUnused(name));
  return [...missing, ...extra.map(([, { name }]) => `${name} is none of ${layout}'s`)];
}

function wrongTensors(dir: string, { layout }: Found, faults: readonly string[]): Problem {
  const rest = faults.length - FAULTS_MAX;
  const lines = [...faults.slice(0, FAULTS_MAX), ...(rest > 0 ? [`and ${rest} more`] : [])];
  return new Problem(
    `${dir} is no whole ${layout}, and nothing was written:\n${lines.map((line) => `  ${line}`).join("\n")}`,
  );
}

async function tokenizerOf(dir: string, { tokenizer: expected, layout }: Found, given: string | undefined) {
  if (expected === undefined) return undefined;
  const all = await Promise.all(expected.files.map((name) => Bun.file(join(dir, name)).exists()));
  const own = expected.files.find((_, index) => all[index]);
  const path = given ?? (own && join(dir, own));
  if (path === undefined)
    return new Problem(
      `${dir} has no ${expected.files.join(", ")}: ${layout} only names its tokenizer; give its file with --tokenizer`,
      EXIT.usage,
    );
  const tokenizer = await readTokenizer(path);
  if (tokenizer instanceof Problem) return tokenizer;
  const fault = tokenizerFault(tokenizer, expected);
  // No text becomes a token behind the table.
  const vocabulary = Math.min(tokenizer.vocabulary, expected.rows);
  return fault === undefined
    ? { ...tokenizer, vocabulary, path }
    : new Problem(`${path}: ${fault}; give the policy's own with --tokenizer`);
}

/** The licence in the head of the folder's README, as model cards have it. */
async function licenceIn(dir: string): Promise<string | undefined | Problem> {
  const path = join(dir, "README.md");
  const text = await readText(path).catch(
    (error) => new Problem(`${path} cannot be read (${reason(error)}); ${ADVICE}`),
  );
  if (text instanceof Problem) return text;
  const [, head = ""] = /^---\n([\s\S]*?)\n---/.exec(text ?? "") ?? [];
  return /^license: *"?([^"\n]+?)"? *$/m.exec(head)?.[1];
}

/** A picture of each camera in wire order: those of a golden case, or drawings. */
async function picturesOf(
  { cameras }: Robot,
  image: BundleFacts["image"],
  golden: GoldenFiles | undefined,
  { draw }: ImportOptions,
) {
  if (golden !== undefined) {
    return { names: cameras.map(({ name }) => golden.first.frames[name] ?? ""), files: new Map<string, Uint8Array>() };
  }
  const drawn = await draw(image.resize === "exact" ? image : undefined);
  if (drawn instanceof Problem) return drawn;
  const names = cameras.map((_, index) => `camera-${index}.jpg`);
  return { names, files: new Map(names.map((name, index) => [name, drawn[index % drawn.length] ?? new Uint8Array()])) };
}

/** The files that were read: weights, what describes them, and the tokenizer, which may be of another folder. */
async function originOf(dir: string, { layout, files: read }: Found, { files }: Scan, tokenizer: string | undefined) {
  const others = await Promise.all(
    [...new Set([...read, ...(tokenizer === undefined ? [] : [relative(dir, tokenizer)])])].map(async (path) => {
      return { path: path.startsWith("..") ? basename(path) : path, sha256: await fileDigest(join(dir, path)) };
    }),
  );
  return { layout, files: [...files, ...others] };
}

/** In robot units: the tolerance of a normalised value, times what the widest column makes of it. */
function toleranceOf(
  precision: Precision,
  compute: Half | undefined,
  { action }: BundleFacts,
  norm: NormStats,
): number {
  const flat = (list: NormStats["action"]["q01"]) => (list ?? []).flat();
  const halves = (low: NormStats["action"]["q01"], high: NormStats["action"]["q01"]) =>
    flat(high).map((value, at) => Math.abs(value - (flat(low)[at] ?? 0)) / 2);
  const { q01, q99, min, max, std } = norm.action;
  const widest = Math.max(1, ...halves(q01, q99), ...halves(min, max), ...flat(std).slice(0, action.columns.length));
  return (compute ? HALF_TOLERANCES[compute] : TOLERANCES[precision]) * widest;
}
