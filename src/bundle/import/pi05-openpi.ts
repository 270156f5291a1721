/** pi0.5 in openpi's PyTorch layout: `config.json`, `model.safetensors`, `assets/<asset>/norm_stats.json`. */
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import { readJson, reason } from "../schema.ts";
import type { Found } from "./found.ts";
import { isUnused } from "./paligemma-names.ts";
import { describePi05, PALIGEMMA_TOKENS } from "./pi05.ts";
import { pi05Table, sizesOf } from "./pi05-weights.ts";
import type { FeatureNorm } from "./processors.ts";
import type { Stored } from "./safetensors.ts";

const Config = Type.Object({ action_horizon: Type.Integer({ minimum: 1 }) });
const Quantiles = Type.Object({ q01: Type.Array(Type.Number()), q99: Type.Array(Type.Number()) });
const Stats = Type.Object({ norm_stats: Type.Object({ state: Quantiles, actions: Quantiles }) });

/** Places of the pictures (`models/model.py`, `IMAGE_KEYS`): a missing one keeps its place. */
const VIEWS = ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"];
/** `Pi0Config.max_token_len` of pi0.5, and `sample_actions`' steps. */
const TOKENS_MAX = 200;
const STEPS = 10;
const ADVICE = "fetch the checkpoint again";

export async function readPi05OpenPi(
  dir: string,
  tensors: ReadonlyMap<string, Stored>,
  licence: string | undefined,
): Promise<Found | Problem> {
  const config = await readJson(join(dir, "config.json"), Config, ADVICE);
  if (config instanceof Problem) return config;
  const path = await statsPath(dir);
  if (path instanceof Problem) return path;
  const stats = await readJson(path, Stats, ADVICE);
  if (stats instanceof Problem) return stats;
  const { state, actions } = stats.norm_stats;
  if (tensors.has("state_proj.weight") && !tensors.has("time_mlp_in.weight"))
    return new Problem(`${dir} is a pi0, which this tendon does not import; name a pi0.5`);
  const sizes = sizesOf(tensors);
  // The range plus 1e-6, in float64 (`transforms.py`): what a column without an epsilon has.
  const norm = (statistics: typeof state): FeatureNorm => ({ column: { norm: "quantile" }, statistics });
  return {
    layout: "openpi pi0.5",
    title: "pi0.5",
    files: ["config.json", relative(dir, path)],
    policy: {
      views: VIEWS,
      empty: [],
      ...{ stateColumns: state.q01.length, actionColumns: actions.q01.length, licence },
      actionNames: [],
      quantiles: { state, action: actions },
      isRelative: undefined,
    },
    tokenizer: {
      files: ["paligemma_tokenizer.model", "tokenizer.model", "tokenizer.json"],
      ...PALIGEMMA_TOKENS,
      rows: sizes.language.vocabulary ?? 0,
    },
    isUnused,
    table: pi05Table(sizes, tensors),
    describe: (robot) =>
      describePi05(
        {
          ...{ sizes, state: norm(state), action: norm(actions) },
          ...{ rows: config.action_horizon, steps: STEPS, tokensMax: TOKENS_MAX },
          viewsFor: () => VIEWS,
          filter: "pillow-bilinear",
          times: countedTimes(STEPS),
        },
        robot,
      ),
  };
}

/** Times of openpi's loop (`pi0_pytorch.py`, `sample_actions`): float32(−1 / steps) is added again and again, in float32. */
function countedTimes(steps: number): number[] {
  const step = Math.fround(-1 / steps);
  const times = [1];
  for (let index = 0; index < steps; index += 1) times.push(Math.fround((times[index] ?? 0) + step));
  return times;
}

/** The one file of statistics below `assets`. */
async function statsPath(dir: string): Promise<string | Problem> {
  const assets = join(dir, "assets");
  try {
    const all = await readdir(assets, { recursive: true });
    const found = all.filter((path) => /(^|\/)norm_stats\.json$/.test(path)).sort();
    if (found.length === 1) return join(assets, found[0] ?? "");
    const what = found.length === 0 ? "none" : found.join(" and ");
    return new Problem(`${assets} holds ${what}, expected one norm_stats.json; leave only that of the robot`);
  } catch (error) {
    return new Problem(`${assets} cannot be read (${reason(error)}); ${ADVICE}`);
  }
}
