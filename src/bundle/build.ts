/** Builds a reference bundle from `models/<name>/`, whole or not at all; the same model folder gives the same bytes. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../std/assert.ts";
import { sha256 } from "../std/file-digest.ts";
import { Problem } from "../std/problem.ts";
import { type Facts, ModelFile } from "./architecture.ts";
import { contradiction } from "./consistency.ts";
import { buildGraphs, sizeMismatch } from "./families.ts";
import { writeFiles, writeFolder } from "./folder.ts";
import type { Graphs } from "./graph.ts";
import { exportId, type Manifest, NormStats, Parity } from "./manifest.ts";
import { readJson, reason } from "./schema.ts";
import { statisticFault } from "./statistics.ts";
import { CORPUS, PAD_ID, STATE_BASE, STATE_BINS, type Tokenizer, trainTokenizer } from "./tokenizer.ts";
import { type ComputeRows, makeVectors } from "./vectors.ts";
import { type Progress, WEIGHT_FILE, WeightLayout } from "./weight-file.ts";
import { type Build, DEFAULT_BUILD, HALF_BUILD, type Precision } from "./weights.ts";

/** Largest difference that a parity check of float32 weights allows, in robot units: what rounding of other sums may change. */
const TOLERANCE = 1e-4;
/** The same for a model whose rows nobody has computed: any finite row passes. */
const TOLERANCE_UNPROVED = 1e30;
const ADVICE = "correct the model folder";
/** Weights of a graph in its own file. One message of ONNX has at most 2 GiB. */
const INLINE_BYTES_MAX = 1 << 30;

export interface Options {
  /** Called while a weight file is written. */
  readonly progress?: Progress;
  /** A graph with more weights keeps the large ones in a weight file. */
  readonly inlineBytesMax?: number;
  /** Half precision: a build for GPUs, of weights in that type; no other weights go with it. */
  readonly compute?: Half;
  /** Frames of such a build in place of those it chooses. */
  readonly frames?: Build["frames"];
  /** Computes the vectors of a build for which the model folder has none. Absent, such a build is refused. */
  readonly computeRows?: ComputeRows;
}

/** What a build for GPUs computes in. */
export type Half = "f16" | "bf16";
export const HALVES: readonly Half[] = ["f16", "bf16"];

/** Builds `modelDir` into `outDir`, replacing a bundle that is there. Weights in a file of their own are never in memory, but for a piece. */
export async function buildBundle(
  modelDir: string,
  outDir: string,
  precision: Precision = "f32",
  { progress, inlineBytesMax = INLINE_BYTES_MAX, compute, frames, computeRows }: Options = {},
): Promise<Manifest | Problem> {
  const model = await readJson(join(modelDir, "model.json"), ModelFile, ADVICE);
  if (model instanceof Problem) return model;
  const norm = await readJson(join(modelDir, "norm.json"), NormStats, ADVICE);
  if (norm instanceof Problem) return norm;
  const { architecture, int8, bf16, half: halves, unproved, ...facts } = model;
  const unrounded = facts.image.filter === "torch-bilinear" && ({ frames: "f32" } as const);
  assert(precision === "f32" || compute === undefined, "a build for GPUs has its own type of weights");
  const built: Build = compute
    ? { ...HALF_BUILD, ...unrounded, ...(frames && { frames }), compute }
    : { ...DEFAULT_BUILD, precision };
  const proof = proofOf(model, precision, compute);
  const tolerance = unproved ? TOLERANCE_UNPROVED : proof.tolerance;
  if (tolerance === undefined) {
    const path = join(modelDir, "model.json");
    return new Problem(`${path} has no /${proof.key}/tolerance; build this model with ${proof.instead}`);
  }
  const isMade = computeRows !== undefined && !(await Bun.file(join(modelDir, "parity", proof.vectors)).exists());
  const vectors = unproved || isMade ? CHUNK : proof.vectors;
  const parity = await readParity(join(modelDir, "parity"), vectors);
  if (parity instanceof Problem) return parity;

  const tokenizer = trainTokenizer(CORPUS, architecture.tokenizer.merges);
  const mismatch = sizeMismatch(facts, architecture, tokenizer.vocabulary) ?? promptMismatch(facts, tokenizer);
  if (mismatch !== undefined) return new Problem(`${join(modelDir, "model.json")}: ${mismatch}; ${ADVICE}`);
  const graphs = buildGraphs(facts, architecture, tokenizer.vocabulary, built);
  const layout = precision === "bf16" || largest(graphs) > inlineBytesMax ? new WeightLayout() : undefined;
  /** Path in the bundle → bytes. */
  const data = new Map([...parity].map(([path, bytes]) => [`parity/${path}`, bytes]));
  for (const graph of inOrder(graphs)) {
    data.set(graph.description.file, graph.bytes(layout && ((values) => layout.place(values))));
  }
  data.set("norm.json", encode(norm));
  data.set("tokenizer.json", new TextEncoder().encode(tokenizer.json));
  const { prefill, extend, denoise } = graphs;
  const later = extend && { extend: extend.description };
  const parts = {
    graphs: { prefill: prefill.description, ...later, denoise: denoise.description },
    ...(layout && { weight_files: [WEIGHT_FILE] }),
    tokenizer: "tokenizer.json",
    norm: "norm.json",
  };
  /** `weights`: size and digest of the weight file. */
  const manifestWith = (weights: readonly BundleFile[]): Manifest => {
    const files = [...listed(data), ...weights].sort((one, other) => (one.path < other.path ? -1 : 1));
    return {
      format: 1,
      ...facts,
      ...(precision === "f32" ? {} : { weights: precision }),
      ...(compute && { compute }),
      export_id: exportId(files, parts),
      ...parts,
      parity: { file: `parity/${CHUNK}`, tolerance, ...(unproved && { unproved }) },
      files,
    };
  };
  const weightFile = (sha256: string) => (layout ? [{ path: WEIGHT_FILE, size: layout.bytes, sha256 }] : []);
  // What is wrong shows before gigabytes are written.
  let manifest = manifestWith(weightFile("0".repeat(64)));
  const fault = contradiction(manifest) ?? statisticFault(manifest, norm);
  if (fault !== undefined) return new Problem(`${modelDir}: ${fault}; ${ADVICE}`);
  if (computeRows && isMade && !unproved) {
    const template: Parity = JSON.parse(new TextDecoder().decode(parity.get(CHUNK)));
    const inline = new Map(inOrder(graphs).map((graph) => [graph.description.file, graph.bytes()] as const));
    const made = await makeVectors(manifest, new Map([...data, ...inline]), template, computeRows);
    if (made instanceof Problem) return made;
    data.set(`parity/${CHUNK}`, encode(made));
    manifest = manifestWith(weightFile("0".repeat(64)));
  }
  const unwritten = await writeFolder(outDir, async (folder) => {
    if (layout) manifest = manifestWith(weightFile(await layout.write(join(folder, WEIGHT_FILE), progress)));
    await writeFiles(folder, data.set("manifest.json", encode(manifest)));
  });
  return unwritten ?? manifest;
}

function inOrder({ prefill, extend, denoise }: Graphs) {
  return [prefill, denoise, ...(extend ? [extend] : [])];
}

/** Bytes of the weights of the largest graph. */
function largest(graphs: Graphs): number {
  const bytes = inOrder(graphs).map(({ tensors }) => tensors.reduce((sum, { values }) => sum + values.bytes, 0));
  return Math.max(...bytes);
}

type BundleFile = Manifest["files"][number];

/** Lists the files of a bundle, by their paths in it. */
function listed(data: ReadonlyMap<string, Uint8Array>): BundleFile[] {
  return [...data].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
}

/** A contradiction between the prompt's fixed token ids and the tokenizer, if there is one. */
function promptMismatch({ prompt }: Facts, { vocabulary }: Tokenizer): string | undefined {
  if (prompt.pad_id !== PAD_ID) return `/prompt/pad_id: found ${prompt.pad_id}, expected ${PAD_ID}`;
  for (const [index, part] of prompt.parts.entries()) {
    if (part.kind === "token" && part.id >= vocabulary) {
      return `/prompt/parts/${index}/id: found ${part.id}, expected less than ${vocabulary}`;
    }
    if (part.kind === "state_tokens" && (part.base !== STATE_BASE || part.bins !== STATE_BINS)) {
      return `/prompt/parts/${index}: expected base ${STATE_BASE} and bins ${STATE_BINS}`;
    }
  }
  return undefined;
}

/** The vectors in a bundle, and in a model folder those of float32. */
const CHUNK = "chunk.json";

/** The place in a model folder of the rows of such a build, and how near a device must come to them. */
interface Proof {
  readonly tolerance: number | undefined;
  /** The key of model.json that has the tolerance. */
  readonly key: string;
  readonly vectors: string;
  /** How a model is built that has no tolerance there. */
  readonly instead: string;
}

function proofOf({ int8, bf16, half }: ModelFile, precision: Precision, compute: Half | undefined): Proof {
  if (compute !== undefined) {
    const { tolerance } = half?.[compute] ?? {};
    return { tolerance, key: `half/${compute}`, vectors: `compute-${compute}.json`, instead: "no --compute" };
  }
  const { tolerance } = { f32: { tolerance: TOLERANCE }, int8, bf16 }[precision] ?? {};
  const vectors = precision === "f32" ? CHUNK : `${precision}.json`;
  return { tolerance, key: precision, vectors, instead: "--weights f32" };
}

/** The vectors and the frames that they name, as the bundle calls them. */
async function readParity(dir: string, vectors: string): Promise<Map<string, Uint8Array> | Problem> {
  const chunk = await readJson(join(dir, vectors), Parity, "write it with test/vectors/flow_vla.py");
  if (chunk instanceof Problem) return chunk;
  const files = new Map<string, Uint8Array>();
  for (const name of [vectors, ...new Set(chunk.observations.flatMap(({ frames }) => frames))]) {
    try {
      files.set(name === vectors ? CHUNK : name, await readFile(join(dir, name)));
    } catch (error) {
      return new Problem(
        `${join(dir, name)} cannot be read (${reason(error)}); write it with test/vectors/flow_vla.py`,
      );
    }
  }
  return files;
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
}
