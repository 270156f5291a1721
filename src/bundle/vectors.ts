/** Parity vectors of a build whose model folder has none for it: its own weights, computed in float32. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Problem } from "../std/problem.ts";
import { inTemporaryFolder } from "../std/temporary-folder.ts";
import { exactGraph } from "./exact.ts";
import { writeFiles } from "./folder.ts";
import type { Manifest, Parity } from "./manifest.ts";
import { decodeModel, encodeModel } from "./onnx-schema.ts";

/**
 * Computes the episode of `vectors` on the CPU with the graphs of `bundle`, whose own vectors are not looked at: the same observations with
 * their rows. One with a prefix continues the rows before it.
 */
export type ComputeRows = (
  bundle: { readonly manifest: Manifest; readonly paths: ReadonlyMap<string, string> },
  vectors: Parity,
) => Promise<Parity["observations"] | Problem>;

const PROVENANCE = "tendon bundle build: the weights of this bundle as they are kept, computed in float32 on a CPU";
/** Any finite row. */
const ANY = 1e30;
/** The shortest axis of a rotation, before it is made of length one. Model units. */
const AXIS_MIN = 0.3;
/** Seeds that are tried. */
const SEEDS_MAX = 100;

/** `data`: the files of the bundle; `template`: the vectors of float32, whose observations are taken. */
export async function makeVectors(
  manifest: Manifest,
  data: ReadonlyMap<string, Uint8Array>,
  template: Parity,
  compute: ComputeRows,
): Promise<Parity | Problem> {
  return await inTemporaryFolder(join(tmpdir(), "tendon-vectors-"), async (folder) => {
    const exact = structuredClone(manifest);
    delete exact.compute;
    delete exact.weights;
    exact.parity = { ...exact.parity, tolerance: ANY, unproved: true };
    const files = new Map(data);
    for (const { file, inputs, outputs } of Object.values(exact.graphs)) {
      const bytes = files.get(file);
      if (bytes !== undefined) files.set(file, encodeModel(exactGraph(decodeModel(bytes))));
      for (const port of [...inputs, ...outputs]) if (port.dtype === manifest.compute) port.dtype = "f32";
    }
    await writeFiles(folder, files);
    const paths = new Map([...files.keys()].map((path) => [path, join(folder, path)]));
    const seed = await plainSeed(exact, paths, template, compute);
    if (seed instanceof Problem) return seed;
    const observations = await compute({ manifest: exact, paths }, { ...template, seed });
    if (observations instanceof Problem) return observations;
    return { ...template, seed, observations, provenance: PROVENANCE };
  });
}

/**
 * The first seed whose rotations are all well defined. Random weights also give vectors that are short or nearly parallel, on which
 * Gram-Schmidt makes any rounding as large as it likes.
 */
async function plainSeed(
  manifest: Manifest,
  paths: ReadonlyMap<string, string>,
  template: Parity,
  compute: ComputeRows,
): Promise<number | Problem> {
  const { rotation6d } = manifest.action;
  if (rotation6d.length === 0) return template.seed;
  const columns = manifest.action.columns.map(({ max_jump, max_step, ...one }) => ({ ...one, min: -ANY, max: ANY }));
  const raw = { ...manifest, action: { ...manifest.action, rotation6d: [], columns } };
  for (let seed = template.seed; seed < template.seed + SEEDS_MAX; seed += 1) {
    const observations = await compute({ manifest: raw, paths }, { ...template, seed });
    if (observations instanceof Problem) return observations;
    const rows = observations.flatMap(({ actions }) => actions);
    if (rows.every((row) => rotation6d.every((at) => shortestAxis(row.slice(at, at + 6)) >= AXIS_MIN))) return seed;
  }
  return new Problem(`no seed up to ${template.seed + SEEDS_MAX} gives rotations that are well defined`);
}

/** What Gram-Schmidt divides by: the length of the first vector, or of the second one's part across it. */
function shortestAxis([a = 0, b = 0, c = 0, d = 0, e = 0, f = 0]: readonly number[]): number {
  const first = Math.hypot(a, b, c);
  const along = (a * d + b * e + c * f) / first;
  return Math.min(first, Math.sqrt(Math.max(0, d * d + e * e + f * f - along * along)));
}
