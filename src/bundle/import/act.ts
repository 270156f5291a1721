/** ACT as LeRobot publishes it (`policies/act/`, 0.6.1): its configuration as sizes, and as facts with what a robot file says. */
import { type Static, Type } from "@sinclair/typebox";
import type { ActArchitecture } from "../act.ts";
import type { ResNet } from "../resnet.ts";
import { LEROBOT_FIELDS, STATE } from "./lerobot.ts";
import type { Stored } from "./safetensors.ts";
import { Shapes } from "./shapes.ts";

/** Bounds of sizes, far above those of any policy: a size is names and memory before a tensor is compared with it. */
const WIDTH_MAX = 65_536;
const COUNT_MAX = 1024;
const Count = Type.Integer({ minimum: 1, maximum: COUNT_MAX });
const Width = Type.Integer({ minimum: 1, maximum: WIDTH_MAX });

/** The fields of `config.json` that the chunk depends on. */
export const ActConfig = Type.Object({
  ...LEROBOT_FIELDS,
  vision_backbone: Type.Union([Type.Literal("resnet18"), Type.Literal("resnet34"), Type.Literal("resnet50")]),
  replace_final_stride_with_dilation: Type.Union([Type.Boolean(), Type.Integer()]),
  pre_norm: Type.Boolean(),
  dim_model: Width,
  n_heads: Count,
  dim_feedforward: Width,
  // `glu` halves what the next layer wants whole: LeRobot's own code fails with it.
  feedforward_activation: Type.Union([Type.Literal("relu"), Type.Literal("gelu")]),
  n_encoder_layers: Type.Integer({ minimum: 0, maximum: COUNT_MAX }),
  n_decoder_layers: Count,
});
export type ActConfig = Static<typeof ActConfig>;

export const ENVIRONMENT = "observation.environment_state";
/** Blocks of each stage (torchvision `models/resnet.py`). */
const BLOCKS = { resnet18: [2, 2, 2, 2], resnet34: [3, 4, 6, 3], resnet50: [3, 4, 6, 3] } as const;
/** Published channels, for a tensor that is missing. */
const CHANNELS = [64, 128, 256, 512] as const;

/** What a policy observes. */
export interface Observed {
  /** Keys of its pictures, in its order, all of one size. */
  readonly views: readonly string[];
  readonly width: number;
  readonly height: number;
  readonly state: number;
  readonly environment: number;
}

/** The features of a configuration, or what is not as this family has it. */
export function observedOf({ input_features: features }: ActConfig): Observed | string {
  const views = Object.keys(features).filter((key) => features[key]?.type === "VISUAL");
  const [, height = 0, width = 0] = features[views[0] ?? ""]?.shape ?? [];
  const other = views.find((key) => !Bun.deepEquals(features[key]?.shape, [3, height, width]));
  if (views.length === 0) return "/input_features has no picture, expected at least one";
  if (other !== undefined)
    return `/input_features/${other}/shape is ${features[other]?.shape}, expected 3,${height},${width} as the first picture's`;
  const state = features[STATE]?.shape[0];
  if (state === undefined) return `/input_features has no ${STATE}, expected one, which LeRobot's own code reads`;
  return { views, width, height, state, environment: features[ENVIRONMENT]?.shape[0] ?? 0 };
}

/** The sizes; those of the backbone's channels are the shapes of tensors. */
export function actArchitecture(
  config: ActConfig,
  { environment, views }: Observed,
  tensors: ReadonlyMap<string, Stored>,
): ActArchitecture {
  const shapes = new Shapes(tensors);
  const channels = (name: string, published: number) => shapes.axis(`model.backbone.${name}`, 0, published);
  const backbone: ResNet = {
    stem: channels("conv1.weight", CHANNELS[0]),
    stages: BLOCKS[config.vision_backbone].map((blocks, stage) => {
      return { blocks, channels: channels(`layer${stage + 1}.0.conv1.weight`, CHANNELS[stage] ?? 0) };
    }),
    bottleneck: config.vision_backbone === "resnet50",
    dilated: Boolean(config.replace_final_stride_with_dilation),
  };
  return {
    ...{ backbone, environment, views },
    ...{ width: config.dim_model, heads: config.n_heads, mlp: config.dim_feedforward },
    ...{ encoder_layers: config.n_encoder_layers, decoder_layers: config.n_decoder_layers },
    ...{ pre_norm: config.pre_norm, activation: config.feedforward_activation },
  };
}
