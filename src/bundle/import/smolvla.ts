/** SmolVLA in LeRobot's layout (`policies/smolvla`, 0.6.1). */
import { type Static, Type } from "@sinclair/typebox";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import type { Architecture } from "../architecture.ts";
import { columnsOf, type Described, IMPORTED, ONE_SHOT, PADDED } from "./described.ts";
import type { Found } from "./found.ts";
import { ADVICE, flowFault, LEROBOT_FIELDS, type LeRobot, readLeRobot } from "./lerobot.ts";
import { cameraOf } from "./robot-file.ts";
import type { Stored } from "./safetensors.ts";
import { type BackboneHeads, isUnused, type Sizes, sizesOf, smolVlaTable } from "./smolvla-weights.ts";

/** Fields that are read; others say how it was trained. Those of one value ask for something that the graphs have not. */
const Config = Type.Object({
  ...LEROBOT_FIELDS,
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
});

/** Heads of the backbones that LeRobot's configuration names, which no file of a checkpoint tells. Those of others are in the robot file. */
const BACKBONES: Readonly<Record<string, BackboneHeads>> = {
  "HuggingFaceTB/SmolVLM2-500M-Video-Instruct": { heads: 15, vision_heads: 12 },
};

/** Lengths that a prompt is padded to before the longest: fewer tokens for the same rows, since padding is masked. */
const BUCKETS = [16, 32];
/** Any id will do: padding is masked. LeRobot pads with this one, `<|im_end|>`. */
const PAD_ID = 2;

export async function readSmolVla(
  dir: string,
  tensors: ReadonlyMap<string, Stored>,
  licence: string | undefined,
): Promise<Found | Problem> {
  const read = await readLeRobot(dir, Config, licence);
  if (read instanceof Problem) return read;
  const { path, config, processors, state, files, policy } = read;
  const sizes = sizesOf(tensors, config);
  const known = BACKBONES[config.vlm_model_name];
  return {
    ...{ layout: "LeRobot SmolVLA", title: "SmolVLA", files },
    policy: known ? policy : { ...policy, unknownBackbone: config.vlm_model_name },
    tokenizer: { files: ["tokenizer.json"], tokens: {}, rows: sizes.language.vocabulary ?? 0 },
    isUnused: (name) => isUnused(name, sizes),
    table: smolVlaTable(sizes),
    describe: (robot) => {
      const backbone = present(known ?? robot.backbone, "heads of the backbone, which the robot file was asked for");
      const fault = faultOf(read, sizes, backbone);
      if (fault !== undefined) return new Problem(`${path}: ${fault}; ${ADVICE}`);
      const { state: observed, action, norm } = columnsOf(robot, state, processors.action);
      const [width, height] = config.resize_imgs_with_padding;
      const tokens = sizes.positions / (sizes.vision.shuffle ?? 1) ** 2;
      const tokensMax = processors.tokenizer?.max_length ?? 48;
      const facts: Described["facts"] = {
        ...ONE_SHOT,
        family: "flow-vla",
        image: { ...PADDED, width, height, place: "bottom_right", filter: "torch-bilinear", tokens },
        state: { ...observed, width: sizes.stateWidth },
        prompt: {
          tokens_max: tokensMax,
          buckets: BUCKETS.filter((length) => length < tokensMax),
          pad_id: PAD_ID,
          parts: [{ kind: "template", text: "{instruction}", clean: ["end_newline"] }],
        },
        action: { ...action, rows: config.chunk_size, width: sizes.actionWidth, rotation6d: [] },
        flow: { t_start: 1, t_end: 0, steps: config.num_steps, shift: 1 },
      };
      // Pictures that are missing come last and nothing sees them, so the graphs have none (`prepare_images`).
      const views = read.views.flatMap((key) => cameraOf(robot, key) ?? []);
      return { facts, architecture: architectureOf(sizes, backbone, views), norm };
    },
  };
}

/** What the configuration or the processors ask for that the graphs have not. */
function faultOf(
  read: LeRobot<Static<typeof Config>>,
  { positions, vision, queries, keys }: Sizes,
  { heads, vision_heads: towerHeads }: BackboneHeads,
): string | undefined {
  const fault = flowFault(read, "smolvla_new_line_processor");
  if (fault !== undefined) return fault;
  const { resize_imgs_with_padding: edges } = read.config;
  const side = Math.sqrt(positions);
  // A patch has the position of the place in which it lies in the picture, as a fraction in float32: exact for powers of two only.
  if (!Number.isInteger(Math.log2(side)) || edges.some((edge) => edge !== side * vision.patch))
    return `/resize_imgs_with_padding is ${edges}, expected ${side * vision.patch} twice, the ${positions} positions of the tower, a power of two each way`;
  if (queries % heads > 0 || keys % (queries / heads) > 0 || vision.width % towerHeads > 0)
    return `the backbone has ${heads} heads and ${towerHeads} in its tower, expected those of ${queries}, ${keys} and ${vision.width} columns`;
  return undefined;
}

function architectureOf(
  { vision, language, expert, queries, keys }: Sizes,
  { heads, vision_heads }: BackboneHeads,
  views: string[],
): Architecture {
  const headDim = queries / heads;
  return {
    ...IMPORTED,
    vision: { ...vision, heads: vision_heads },
    language: { ...language, heads, kv_heads: keys / headDim, head_dim: headDim },
    expert,
    inputs: { views, state: "prefix" },
  };
}
