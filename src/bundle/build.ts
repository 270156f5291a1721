/** Builds a reference bundle from `models/<name>/`, whole or not at all; the same model folder gives the same bytes. */
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Problem } from "../error/problem.ts";
import { type Facts, ModelFile } from "./architecture.ts";
import { contradiction } from "./consistency.ts";
import { CORPUS } from "./corpus.ts";
import { exportId, sha256 } from "./digest.ts";
import { buildGraphs, sizeMismatch } from "./families.ts";
import { type Manifest, NormStats, Parity } from "./manifest.ts";
import { readJson, reason } from "./schema.ts";
import { statisticFault } from "./statistics.ts";
import { PAD_ID, STATE_BASE, STATE_BINS, type Tokenizer, trainTokenizer } from "./tokenizer.ts";
import type { Precision } from "./weights.ts";

/** Largest difference that a parity check of float32 weights allows, in robot units: what rounding of other sums may change. */
const TOLERANCE = 1e-4;
const ADVICE = "correct the model folder";

/** Builds `modelDir` into `outDir`, replacing a bundle that is there. */
export async function buildBundle(
  modelDir: string,
  outDir: string,
  precision: Precision = "f32",
): Promise<Manifest | Problem> {
  const model = await readJson(join(modelDir, "model.json"), ModelFile, ADVICE);
  if (model instanceof Problem) return model;
  const norm = await readJson(join(modelDir, "norm.json"), NormStats, ADVICE);
  if (norm instanceof Problem) return norm;
  const { architecture, int8, ...facts } = model;
  const tolerance = precision === "f32" ? TOLERANCE : int8?.tolerance;
  if (tolerance === undefined) {
    return new Problem(`${join(modelDir, "model.json")} has no /int8/tolerance; build this model with --weights f32`);
  }
  const parity = await readParity(join(modelDir, "parity"), precision);
  if (parity instanceof Problem) return parity;

  const tokenizer = trainTokenizer(CORPUS, architecture.tokenizer.merges);
  const mismatch = sizeMismatch(facts, architecture) ?? promptMismatch(facts, tokenizer);
  if (mismatch !== undefined) return new Problem(`${join(modelDir, "model.json")}: ${mismatch}; ${ADVICE}`);
  const { prefill, extend, denoise } = buildGraphs(facts, architecture, tokenizer.vocabulary, precision);
  /** Path in the bundle → bytes. */
  const data = new Map([...parity].map(([path, bytes]) => [`parity/${path}`, bytes]));
  for (const graph of [prefill, denoise, ...(extend ? [extend] : [])]) data.set(graph.description.file, graph.bytes());
  data.set("norm.json", encode(norm));
  data.set("tokenizer.json", new TextEncoder().encode(tokenizer.json));
  const files = listed(data);
  const later = extend && { extend: extend.description };
  const graphs = { prefill: prefill.description, ...later, denoise: denoise.description };
  const parts = { graphs, tokenizer: "tokenizer.json", norm: "norm.json" };
  const manifest: Manifest = {
    format: 1,
    ...facts,
    ...(precision === "f32" ? {} : { weights: precision }),
    export_id: exportId(files, parts),
    ...parts,
    parity: { file: `parity/${CHUNK}`, tolerance },
    files,
  };
  const fault = contradiction(manifest) ?? statisticFault(manifest, norm);
  if (fault !== undefined) return new Problem(`${modelDir}: ${fault}; ${ADVICE}`);
  data.set("manifest.json", encode(manifest));
  return (await writeFolder(outDir, data)) ?? manifest;
}

/** Lists the files of a bundle, by their paths in it. */
function listed(data: ReadonlyMap<string, Uint8Array>): Manifest["files"] {
  const files = [...data].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
  return files.sort((one, other) => (one.path < other.path ? -1 : 1));
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

/** The vectors in a bundle, and in a model folder those of each kind of weights. */
const CHUNK = "chunk.json";
const VECTORS: Readonly<Record<Precision, string>> = { f32: CHUNK, int8: "int8.json" };

/** The vectors and the frames that they name, as the bundle calls them. */
async function readParity(dir: string, precision: Precision): Promise<Map<string, Uint8Array> | Problem> {
  const vectors = VECTORS[precision];
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

/** Writes under another name, then renames. Only a bundle or an empty folder is replaced. */
async function writeFolder(outDir: string, data: ReadonlyMap<string, Uint8Array>): Promise<Problem | undefined> {
  let building: string | undefined;
  try {
    await mkdir(dirname(outDir), { recursive: true });
    const standing = await readdir(outDir).catch(() => undefined);
    if (standing !== undefined && standing.length > 0 && !standing.includes("manifest.json")) {
      return new Problem(`${outDir} holds something else than a bundle; choose another --out or empty it`);
    }
    building = await mkdtemp(`${outDir}.building-`);
    for (const [path, bytes] of data) {
      await mkdir(dirname(join(building, path)), { recursive: true });
      await writeFile(join(building, path), bytes);
    }
    // rename() cannot replace a folder that has files: the old one is renamed first.
    const old = `${building}.old`;
    if (standing !== undefined) await rename(outDir, old);
    await rename(building, outDir);
    await rm(old, { recursive: true, force: true });
    return undefined;
  } catch (error) {
    if (building !== undefined) await rm(building, { recursive: true, force: true });
    return new Problem(
      `the bundle cannot be written to ${outDir} (${reason(error)}); free the place or choose another --out`,
    );
  }
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
}
