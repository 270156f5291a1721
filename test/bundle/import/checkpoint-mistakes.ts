/** Mistakes in a publisher's folder, and what import or verify says of each. */
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { filled, halves, more, scaled, transposed } from "../spoiled-graph.ts";
import { ACT, ALL, FLOWS, LEROBOT, type Mistake, OPENPI, PI05, SMOLVLA } from "./mistake.ts";
import { PUBLISHERS } from "./robots.ts";
import { type ChangeFolder, json, tensors, values } from "./spoiled-checkpoint.ts";
import { f32 } from "./tensor-files.ts";

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

/** Statistics whose first value is not a number. */
const otherValues = (side: "pre" | "post", names: RegExp) =>
  tensors((all) => {
    for (const [, { bytes }] of Object.entries(all).filter(([name]) => names.test(name))) bytes.set([0, 0, 0xc0, 0x7f]);
  }, statisticsOf(side));

const SECOND = "model.backbone.layer2.0.conv1.weight";

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
  [
    "a tokenizer that puts a token before each text",
    [SMOLVLA],
    json("tokenizer.json", (file) => {
      const single = [{ SpecialToken: { id: "<s>" } }, { Sequence: { id: "A" } }];
      file.post_processor = { type: "TemplateProcessing", single, special_tokens: { "<s>": { ids: [1] } } };
    }),
    /the tokenizer puts \[1\] before a text and \[\] behind it, expected \[\] and \[\]; give/,
  ],
  [
    "a tokenizer without a token before each text",
    [LEROBOT],
    json("tokenizer.json", (file) => (file.post_processor = null)),
    /the tokenizer puts \[\] before a text/,
  ],
  [
    "a folder for the model card",
    ALL,
    async (dir) => {
      await mkdir(join(dir, "README.md"));
    },
    /README\.md cannot be read \(a file where a folder should be/,
  ],
  [
    "a folder for the statistics",
    [ACT],
    json("policy_preprocessor.json", ({ steps }) => (steps[3].state_file = "..")),
    /\/steps\/3\/state_file: found "\.\."/,
  ],
  ["too many layers", [ACT], json("config.json", (config) => (config.n_encoder_layers = 2000)), /\/n_encoder_layers:/],
  ["too wide a network", [ACT], json("config.json", (config) => (config.dim_model = 4e9)), /\/dim_model: found 4/],
  [
    "layers that are all missing",
    [ACT],
    json("config.json", (config) => (config.n_encoder_layers = 1000)),
    /(\n {2}model\.[^\n]* is missing){100}\n {2}and \d+ more$/,
  ],
  [
    "a tensor without values that says any size",
    [ACT],
    tensors((all) => (all[SECOND] = { shape: [2 ** 40, 0, 3, 3], bytes: new Uint8Array() })),
    /layer2\.0\.conv1\.weight is \[1099511627776,0,3,3\], expected \[128/,
  ],
  [
    "a layer of a great number",
    [LEROBOT],
    tensors(
      (all) => (all["model.paligemma_with_expert.paligemma.model.language_model.layers.9999.more"] = f32([1], () => 0)),
    ),
    /written:\n[^\n]*layers\.9999\.more is none of LeRobot pi0\.5's$/,
  ],
  [
    "twice the channels in the first convolution",
    [ACT],
    tensors((all) => {
      for (const [name, { shape, bytes }] of Object.entries(all))
        if (/backbone\.(conv1|bn1)\./.test(name) && shape.length > 0)
          all[name] = { shape: [2 * (shape[0] ?? 0), ...shape.slice(1)], bytes: Buffer.concat([bytes, bytes]) };
    }),
    /\/architecture\/backbone\/stages\/0\/channels: found \d+, expected \d+, as the first convolution has/,
  ],
  [
    "a deviation that is not a number",
    [LEROBOT, ACT, SMOLVLA],
    otherValues("pre", /^observation\.state\.(q99|std)$/),
    /\/state\/(q99|std)\/0: found NaN, expected a finite number for column 0/,
  ],
  [
    "a deviation of the pixels that is not a number",
    [ACT],
    otherValues("pre", /^observation\.images\.side\.std$/),
    /the statistics of observation\.images\.side are not all finite/,
  ],
  [
    "a variance below 0",
    [ACT],
    values(/layer2\.0\.bn1\.running_var$/, filled(-1)),
    /layer2\.0\.conv1\.weight with model\.backbone\.layer2\.0\.bn1 has a value that is not finite as f32/,
  ],
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
