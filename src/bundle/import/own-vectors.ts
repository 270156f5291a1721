/** Parity vectors of an imported bundle: the rows that its own weights give in float32, for a device to be compared with. */
import { join } from "node:path";
import { Problem } from "../../std/problem.ts";
import type { Manifest, NormStats, Parity } from "../manifest.ts";
import type { ComputeRows } from "../vectors.ts";

const PROVENANCE =
  "tendon bundle import: the rows are tendon's own, of the weights of this bundle computed on a CPU; what the publisher's code computes is in golden.json, where that is there";
/** Any finite value. */
const ANY = 1e30;
const SEED = 1;
const INSTRUCTION = "pick up the red block and put it into the bowl";

/** An observation without rows. `frames`: files of the folder `parity`, one for each camera. */
export function template(
  { state, action }: Pick<Manifest, "state" | "action">,
  norm: NormStats,
  frames: readonly string[],
  given: { readonly state: readonly number[] } | undefined,
): Parity {
  const row = action.columns.map(() => 0);
  const values = given?.state ?? state.columns.map((column, at) => middle(column.norm, norm.state, at));
  const actions = Array.from({ length: action.rows }, () => row);
  return {
    instruction: INSTRUCTION,
    seed: SEED,
    observations: [{ frames: [...frames], state: [...values], step: 0, actions, cache_reset: false }],
    provenance: PROVENANCE,
  };
}

/** A value of a state column whose normalised form lies in the middle of one of 256 bins, another bin for each column. */
function middle(norm: Manifest["state"]["columns"][number]["norm"], stats: NormStats["state"], at: number): number {
  const normal = (2 * (30 + ((at * 29) % 196)) + 1) / 256 - 1;
  const value = (list: readonly number[] | undefined) => list?.[at] ?? 0;
  if (norm === "mean_std") return value(stats.mean) + normal * value(stats.std);
  const [low, high] = norm === "min_max" ? [stats.min, stats.max] : [stats.q01, stats.q99];
  return norm === "none" ? normal : value(low) + ((normal + 1) / 2) * (value(high) - value(low));
}

/** The template with the rows of the bundle in `folder`, whose noise is that of `manifest`. */
export async function ownRows(
  manifest: Manifest,
  exact: Manifest,
  folder: string,
  vectors: Parity,
  compute: ComputeRows,
): Promise<Parity | Problem> {
  const { action } = exact;
  // A policy may jump where it is shown a drawing: its rows are computed all the same.
  const columns = action.columns.map(({ max_jump, max_step, ...column }) => column);
  const open: Manifest = {
    ...exact,
    export_id: manifest.export_id,
    action: { ...action, columns, out_of_range: "clamp" },
    parity: { file: exact.parity.file, tolerance: ANY, unproved: true },
  };
  const paths = new Map(exact.files.map(({ path }) => [path, join(folder, path)]));
  const observations = await compute({ manifest: open, paths }, vectors);
  return observations instanceof Problem ? observations : { ...vectors, observations };
}
