/** Builds a reference bundle from `models/<name>/`, whole or not at all; the same model folder gives the same bytes. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { type Facts, ModelFile } from "./architecture.ts";
import { CHUNK, Draft } from "./draft.ts";
import { buildGraphs, sizeMismatch } from "./families.ts";
import { type Manifest, NormStats, Parity } from "./manifest.ts";
import { RandomWeights } from "./random-weights.ts";
import { readJson, reason } from "./schema.ts";
import { CORPUS, PAD_ID, STATE_BASE, STATE_BINS, type Tokenizer, trainTokenizer } from "./tokenizer.ts";
import { type ComputeRows, makeVectors } from "./vectors.ts";
import type { Progress } from "./weight-file.ts";
import { type Build, DEFAULT_BUILD, HALF_BUILD, type Half, type Precision } from "./weights.ts";

/** Largest difference that a parity check of float32 weights allows, in robot units: what rounding of other sums may change. */
const TOLERANCE = 1e-4;
/** The same for a model whose rows nobody has computed: any finite row passes. */
const TOLERANCE_UNPROVED = 1e30;
const ADVICE = "correct the model folder";

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

/** Builds `modelDir` into `outDir`, replacing a bundle that is there. Weights in a file of their own are never in memory, but for a piece. */
export async function buildBundle(
  modelDir: string,
  outDir: string,
  precision: Precision = "f32",
  { progress, inlineBytesMax, compute, frames, computeRows }: Options = {},
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
  const weights = new RandomWeights(architecture.seed, built);
  const graphs = buildGraphs(facts, architecture, tokenizer.vocabulary, weights);
  const draft = new Draft(
    {
      ...{ facts, graphs, norm, precision, tokenizer: tokenizer.json },
      ...(compute && { compute }),
      proof: { tolerance, ...(unproved && { unproved }) },
      parity,
    },
    inlineBytesMax,
  );
  // What is wrong shows before gigabytes are written.
  const fault = draft.fault();
  if (fault !== undefined) return new Problem(`${modelDir}: ${fault}; ${ADVICE}`);
  if (computeRows && isMade && !unproved) {
    const template: Parity = JSON.parse(new TextDecoder().decode(parity.get(CHUNK)));
    const made = await makeVectors(draft.manifest(), draft.inlineData(), template, computeRows);
    if (made instanceof Problem) return made;
    draft.prove(made);
  }
  return await draft.write(outDir, { ...(progress && { progress }) });
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
