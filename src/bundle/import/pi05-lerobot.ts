/** pi0.5 in LeRobot's layout (`policies/pi05`, 0.6.1). */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import { readJson } from "../schema.ts";
import type { Found } from "./found.ts";
import { isUnused } from "./paligemma-names.ts";
import { describePi05, PALIGEMMA_TOKENS } from "./pi05.ts";
import { pi05Table, sizesOf } from "./pi05-weights.ts";
import { readProcessors } from "./processors.ts";
import { shortKey } from "./robot-file.ts";
import type { Stored } from "./safetensors.ts";

const Shape = Type.Array(Type.Integer({ minimum: 1, maximum: 65_536 }), { minItems: 1 });
const Features = Type.Record(Type.String(), Type.Object({ type: Type.String(), shape: Shape }));

/** Fields that are read; others say how it was trained. */
const Config = Type.Object({
  chunk_size: Type.Integer({ minimum: 1 }),
  num_inference_steps: Type.Integer({ minimum: 1 }),
  min_period: Type.Literal(4e-3),
  max_period: Type.Literal(4),
  image_resolution: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 2, maxItems: 2 }),
  action_feature_names: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String())])),
  input_features: Features,
  output_features: Type.Object({ action: Type.Object({ shape: Shape }) }),
});

const ADVICE = "fetch the checkpoint again";

export async function readPi05LeRobot(
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
  const sizes = sizesOf(tensors);
  const side = Math.sqrt(sizes.patches) * sizes.vision.patch;
  const views = Object.entries(config.input_features).flatMap(([key, { type }]) => (type === "VISUAL" ? [key] : []));
  const stateColumns = config.input_features["observation.state"]?.shape[0] ?? 0;
  const actionColumns = config.output_features.action.shape[0] ?? 0;
  const faults = (): string[] => [
    ...(processors.text === "pi05_prepare_state_tokenizer_processor_step" && processors.tokenizer
      ? []
      : [
          "policy_preprocessor.json has no pi05_prepare_state_tokenizer_processor_step with a tokenizer_processor behind it",
        ]),
    ...views.flatMap((key) => {
      const norm = processors.observation(key);
      return norm instanceof Problem || norm.column.norm !== "none" ? [`${key} is normalised, expected IDENTITY`] : [];
    }),
    ...(config.image_resolution.every((edge) => edge === side)
      ? []
      : [`/image_resolution is ${config.image_resolution}, expected ${side},${side}, as the tower has positions`]),
  ];
  return {
    layout: "LeRobot pi0.5",
    title: "pi0.5",
    files: ["config.json", ...processors.files],
    policy: {
      views,
      empty: views.filter((key) => shortKey(key).startsWith("empty_camera_")),
      ...{ stateColumns, actionColumns, licence },
      actionNames: config.action_feature_names ?? [],
      isRelative: processors.isRelative,
      renamed: processors.renamed,
    },
    tokenizer: {
      files: ["tokenizer.json", "tokenizer.model"],
      ...PALIGEMMA_TOKENS,
      rows: sizes.language.vocabulary ?? 0,
    },
    isUnused,
    table: pi05Table(sizes, tensors),
    describe: (robot) => {
      const [fault] = faults();
      if (fault !== undefined) return new Problem(`${path}: ${fault}; ${ADVICE}`);
      return describePi05(
        {
          ...{ sizes, state, action: processors.action },
          ...{ rows: config.chunk_size, steps: config.num_inference_steps },
          tokensMax: processors.tokenizer?.max_length ?? 200,
          // `_preprocess_images`: pictures that are there in the order of the configuration, then those that are not.
          viewsFor: (shown) => {
            const isShown = (key: string) => shown.includes(shortKey(key));
            return [...views.filter(isShown), ...views.filter((key) => !isShown(key))];
          },
          filter: "torch-bilinear",
          times: undefined,
        },
        robot,
      );
    },
  };
}
