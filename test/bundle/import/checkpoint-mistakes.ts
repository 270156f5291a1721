/** Mistakes in a publisher's folder, and what import or verify says of each. */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { filled, halves, more, scaled, transposed } from "../spoiled-graph.ts";
import { ACT, FLOWS, LEROBOT, type Mistake, OPENPI, PI05, SMOLVLA } from "./mistake.ts";
import { PUBLISHERS } from "./robots.ts";
import { type ChangeFolder, json, tensors, values } from "./spoiled-checkpoint.ts";

const layer = (name: string) => new RegExp(`(language|text)_model\\.layers\\.0\\.${name}`);

const statisticsOf = (side: "pre" | "post") => new Bun.Glob(`policy_${side}processor_step_*.safetensors`);

/** The statistics of one feature in place of another's. */
const otherStatistics = (side: "pre" | "post", from: string, to: string) =>
  tensors((all) => {
    for (const [name, made] of Object.entries(all).filter(([name]) => name.startsWith(`${from}.`)))
      all[name.replace(from, to)] = made;
  }, statisticsOf(side));

/** The statistics of one column less. */
const shorterStatistics = tensors((all) => {
  for (const [name, { shape, bytes, ...made }] of Object.entries(all))
    if (/^observation\.state\.(mean|std|q)/.test(name))
      all[name] = { ...made, shape: [(shape[0] ?? 0) - 1], bytes: bytes.subarray(0, -4) };
}, statisticsOf("pre"));

const without = (names: RegExp) =>
  tensors((all) => {
    for (const name of Object.keys(all).filter((name) => names.test(name))) delete all[name];
  });

/** Matrices [inputs, outputs]. */
const turned = (names: RegExp) =>
  tensors((all) => {
    for (const [name, made] of Object.entries(all).filter(([name]) => names.test(name)))
      all[name] = { ...made, shape: made.shape.toReversed() };
  });

const otherFile =
  (from: string, to: string): ChangeFolder =>
  async (dir) =>
    await cp(join(PUBLISHERS, "../text", from), join(dir, to));

/** The first part of the rows comes last. */
const rolled = (parts: number) => (old: Float32Array) =>
  old.set([...old.subarray(old.length / parts), ...old.subarray(0, old.length / parts)]);
const reversed = (old: Float32Array) => old.reverse();
const OTHER_COLUMNS = /state columns, expected|state\/(q01|mean): found \d+ values, expected one for column/;

export const IN_CHECKPOINT: readonly Mistake<ChangeFolder>[] = [
  ["a missing tensor", PI05, without(/action_in_proj\.bias$/), /action_in_proj\.bias is missing/],
  ["a missing tensor", [SMOLVLA], without(/action_in_proj\.bias$/), /no model\.action_in_proj\.bias, which .*index/],
  ["a missing tensor", [ACT], without(/action_head\.bias$/), /model\.action_head\.bias is missing/],
  ["a transposed weight", FLOWS, turned(layer("mlp.down_proj")), /down_proj\.weight is \[(64,32|32,60)\], expected/],
  ["a transposed weight", [ACT], turned(/action_head\.weight$/), /action_head\.weight is \[32,6\], expected \[6,32\]/],
  [
    "norms before the layers in place of behind them",
    [ACT],
    json("config.json", (config) => (config.pre_norm = true)),
    /model\.encoder\.norm\.weight is missing/,
  ],
  [
    "another policy's tokenizer",
    [LEROBOT, SMOLVLA],
    otherFile("qwen.json", "tokenizer.json"),
    /tokenizer\.json: the tokenizer has .*, expected .*; give the policy's own with --tokenizer/,
  ],
  [
    "another policy's tokenizer",
    [OPENPI],
    otherFile("bpe.model", "paligemma_tokenizer.model"),
    /the tokenizer has .*, expected .*; give the policy's own with --tokenizer/,
  ],
  [
    "statistics of a robot with other columns",
    [OPENPI],
    json("assets/trossen/norm_stats.json", ({ norm_stats: { state } }) => state.q01.pop()),
    OTHER_COLUMNS,
  ],
  ["statistics of a robot with other columns", [LEROBOT, ACT, SMOLVLA], shorterStatistics, OTHER_COLUMNS],
  ["rows of a weight permuted", FLOWS, values(layer("self_attn.k_proj.weight"), reversed), "prefix cache"],
  [
    "query, key and value in another order",
    [ACT],
    values(/encoder\.layers\.0\.self_attn\.in_proj_weight$/, rolled(3)),
    "normalised rows",
  ],
  [
    "a transposed weight of the tower",
    FLOWS,
    values(/vision.*layers\.0\.self_attn\.out_proj\.weight$/, transposed),
    "image tokens",
  ],
  [
    "a transposed weight of the language model",
    [SMOLVLA],
    values(layer("self_attn.q_proj.weight"), transposed),
    "prefix cache",
  ],
  [
    "a transposed weight",
    [ACT],
    values(/encoder\.layers\.0\.self_attn\.out_proj\.weight$/, transposed),
    "normalised rows",
  ],
  [
    "an embedding that is scaled twice",
    FLOWS,
    values(/embed_tokens\.weight$|paligemma\.lm_head\.weight$/, scaled(8)),
    "prefix cache",
  ],
  [
    "an embedding that is not scaled",
    FLOWS,
    values(/embed_tokens\.weight$|paligemma\.lm_head\.weight$/, scaled(1 / 8)),
    "prefix cache",
  ],
  ["w for 1 + w", PI05, values(layer("input_layernorm.weight"), more(-1)), "prefix cache"],
  ["1 + w for w", [SMOLVLA], values(layer("input_layernorm.weight"), more(1)), "prefix cache"],
  [
    "scale, shift and gate in another order",
    PI05,
    values(/expert\.model\.layers\.0\.input_layernorm\.dense/, rolled(3)),
    "velocity",
  ],
  ["cosines before sines", PI05, values(/time_mlp_in\.weight$/, halves(0, 24)), "velocity"],
  ["cosines before sines", [SMOLVLA], values(/action_time_mlp_in\.weight$/, halves(30, 60)), "velocity"],
  ["the time before the rows", [SMOLVLA], values(/action_time_mlp_in\.weight$/, halves(0, 60)), "velocity"],
  ["a batch norm that is not folded", [ACT], values(/layer2\.0\.bn1\.running_mean$/, filled(0)), "normalised rows"],
  [
    "statistics of another feature",
    [LEROBOT, ACT, SMOLVLA],
    otherStatistics("pre", "action", "observation.state"),
    "normalised state",
  ],
  [
    "statistics of another feature for the rows",
    [LEROBOT, ACT, SMOLVLA],
    otherStatistics("post", "observation.state", "action"),
    "rows",
  ],
  [
    "statistics of another camera",
    [ACT],
    otherStatistics("pre", "observation.images.side", "observation.images.front"),
    "pictures",
  ],
  [
    "statistics of another feature",
    [OPENPI],
    json("assets/trossen/norm_stats.json", ({ norm_stats: all }) => (all.state = all.actions)),
    "normalised state",
  ],
  [
    "statistics of another feature for the rows",
    [OPENPI],
    json("assets/trossen/norm_stats.json", ({ norm_stats: all }) => (all.actions = all.state)),
    "rows",
  ],
];
