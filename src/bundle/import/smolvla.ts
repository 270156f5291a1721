/** SmolVLA in LeRobot's layout (`policies/smolvla`, 0.6.1). */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import type { Architecture } from "../architecture.ts";
import { readJson } from "../schema.ts";
import { columnsOf, type Described } from "./described.ts";
import type { Found } from "./found.ts";
import { type Processors, readProcessors } from "./processors.ts";
import { type Robot, shortKey } from "./robot-file.ts";
import type { Stored } from "./safetensors.ts";
import { type BackboneHeads, isUnused, type Sizes, sizesOf, smolVlaTable } from "./smolvla-weights.ts";

const Shape = Type.Array(Type.Integer({ minimum: 1, maximum: 65_536 }), { minItems: 1 });
const Features = Type.Record(Type.String(), Type.Object({ type: Type.String(), shape: Shape }));

/** Fields that are read; others say how it was trained. Those of one value ask for something that the graphs have not. */
const Config = Type.Object({
  n_obs_steps: Type.Literal(1),
  chunk_size: Type.Integer({ minimum: 1 }),
  num_steps: Type.Integer({ minimum: 1 }),
  /** Width and height. */
  resize_imgs_with_padding: Type.Tuple([Type.Integer({ minimum: 1 }), Type.Integer({ minimum: 1 })]),
  vlm_model_name: Type.String(),
  attention_mode: Type.String(),
  self_attn_every_n_layers: Type.Integer(),
  min_period: Type.Literal(4e-3),
  max_period: Type.Literal(4),
  add_image_special_tokens: Type.Literal(false),
  adapt_to_pi_aloha: Type.Literal(false),
  use_delta_joint_actions_aloha: Type.Literal(false),
  input_features: Features,
  output_features: Type.Object({ action: Type.Object({ shape: Shape }) }),
});

/** Heads of the backbones that LeRobot's configuration names, which no file of a checkpoint tells. */
const BACKBONES: Readonly<Record<string, BackboneHeads>> = {
  "HuggingFaceTB/SmolVLM2-500M-Video-Instruct": { heads: 15, vision_heads: 12 },
};

/** Lengths that a prompt is padded to before the longest: fewer tokens for the same rows, since padding is masked. */
const BUCKETS = [16, 32];
/** Any id will do: padding is masked. LeRobot pads with this one, `<|im_end|>`. */
const PAD_ID = 2;
/** Observations that run together. */
const BATCH = 2;
const ADVICE = "fetch the checkpoint again";

export async function readSmolVla(
  dir: string,
  tensors: ReadonlyMap<string, Stored>,
  licence: string | undefined,
): Promise<Found | Problem> {
  const path = join(dir, "config.json");
  const config = await readJson(path, Config, ADVICE);
  if (config instanceof Problem) return config;
  const processors = await readProcessors(dir);
  if (processors instanceof Problem) return processors;
  const state = processors.observation("observation.state");
  if (state instanceof Problem) return state;
  const sizes = sizesOf(tensors, config);
  const keys = Object.entries(config.input_features).flatMap(([key, { type }]) => (type === "VISUAL" ? [key] : []));
  return {
    layout: "LeRobot SmolVLA",
    title: "SmolVLA",
    files: ["config.json", ...processors.files],
    policy: {
      views: keys,
      empty: keys.filter((key) => shortKey(key).startsWith("empty_camera_")),
      stateColumns: config.input_features["observation.state"]?.shape[0] ?? 0,
      actionColumns: config.output_features.action.shape[0] ?? 0,
      licence,
      actionNames: [],
      isRelative: processors.isRelative,
      renamed: processors.renamed,
    },
    tokenizer: { files: ["tokenizer.json"], tokens: {}, rows: sizes.language.vocabulary ?? 0 },
    isUnused: (name) => isUnused(name, sizes),
    table: smolVlaTable(sizes),
    describe: (robot) => {
      const backbone = BACKBONES[config.vlm_model_name];
      if (backbone === undefined) {
        const known = Object.keys(BACKBONES).join(", ");
        return new Problem(
          `${path} names the backbone ${config.vlm_model_name}, and no file of a checkpoint says how many heads it has, expected ${known}; ` +
            "add its heads to src/bundle/import/smolvla.ts",
        );
      }
      const fault = faultOf(processors, keys, config.resize_imgs_with_padding, sizes, backbone);
      if (fault !== undefined) return new Problem(`${path}: ${fault}; ${ADVICE}`);
      const { state: observed, action, norm } = columnsOf(robot, state, processors.action);
      const [width, height] = config.resize_imgs_with_padding;
      const { vision } = sizes;
      const half = [0.5, 0.5, 0.5];
      const tokensMax = processors.tokenizer?.max_length ?? 48;
      const facts: Described["facts"] = {
        family: "flow-vla",
        reference: false,
        stateful: false,
        frames: { first: 1, later: 1 },
        image: {
          ...{ width, height, resize: "pad", place: "bottom_right", filter: "torch-bilinear" },
          ...{ mean: half, std: half, tokens: sizes.positions / (vision.shuffle ?? 1) ** 2 },
        },
        state: { ...observed, width: sizes.stateWidth },
        prompt: {
          tokens_max: tokensMax,
          buckets: BUCKETS.filter((length) => length < tokensMax),
          pad_id: PAD_ID,
          parts: [{ kind: "template", text: "{instruction}", clean: ["end_newline"] }],
        },
        action: { ...action, rows: config.chunk_size, width: sizes.actionWidth, rotation6d: [] },
        flow: { t_start: 1, t_end: 0, steps: config.num_steps, shift: 1 },
        guidance: null,
        memory: null,
        batch: BATCH,
      };
      return { facts, architecture: architectureOf(sizes, backbone, viewsOf(keys, robot)), norm };
    },
  };
}

/** What the configuration or the processors ask for that the graphs have not. */
function faultOf(
  processors: Processors,
  keys: readonly string[],
  edges: readonly number[],
  { positions, vision, queries, keys: ofKeys }: Sizes,
  { heads, vision_heads: towerHeads }: BackboneHeads,
): string | undefined {
  const side = Math.sqrt(positions);
  if (processors.text !== "smolvla_new_line_processor" || processors.tokenizer === undefined)
    return "policy_preprocessor.json has no smolvla_new_line_processor with a tokenizer_processor behind it";
  const normalised = keys.find((key) => {
    const norm = processors.observation(key);
    return norm instanceof Problem || norm.column.norm !== "none";
  });
  if (normalised !== undefined) return `${normalised} is normalised, expected IDENTITY`;
  // A patch has the position of the place in which it lies in the picture, as a fraction in float32: exact for powers of two only.
  if (!Number.isInteger(Math.log2(side)) || edges.some((edge) => edge !== side * vision.patch))
    return `/resize_imgs_with_padding is ${edges}, expected ${side * vision.patch} twice, the ${positions} positions of the tower, a power of two each way`;
  if (queries % heads > 0 || ofKeys % (queries / heads) > 0 || vision.width % towerHeads > 0)
    return `/vlm_model_name has ${heads} heads and ${towerHeads} in its tower, expected those of ${queries}, ${ofKeys} and ${vision.width} columns`;
  return undefined;
}

/** Cameras in the policy's order. Pictures that are missing come last and nothing sees them, so the graphs have none (`prepare_images`). */
function viewsOf(keys: readonly string[], { cameras }: Robot): string[] {
  return keys.flatMap((key) => cameras.find((camera) => camera.key === shortKey(key))?.name ?? []);
}

function architectureOf(
  { vision, language, expert, queries, keys }: Sizes,
  { heads, vision_heads }: BackboneHeads,
  views: string[],
): Architecture {
  const headDim = queries / heads;
  return {
    seed: 0,
    tokenizer: { merges: 0 },
    vision: { ...vision, heads: vision_heads },
    language: { ...language, heads, kv_heads: keys / headDim, head_dim: headDim },
    expert,
    inputs: { views, state: "prefix" },
  };
}
