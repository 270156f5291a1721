/** pi0.5 in LeRobot's layout (`policies/pi05`, 0.6.1). */
import { Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import type { Found } from "./found.ts";
import { ADVICE, flowFault, LEROBOT_FIELDS, readLeRobot } from "./lerobot.ts";
import { isUnused } from "./paligemma-names.ts";
import { describePi05, PALIGEMMA_TOKENS } from "./pi05.ts";
import { pi05Table, sizesOf } from "./pi05-weights.ts";
import { shortKey } from "./robot-file.ts";
import type { Stored } from "./safetensors.ts";

/** Fields that are read; others say how it was trained. */
const Config = Type.Object({
  ...LEROBOT_FIELDS,
  num_inference_steps: Type.Integer({ minimum: 1 }),
  min_period: Type.Literal(4e-3),
  max_period: Type.Literal(4),
  image_resolution: Type.Array(Type.Integer({ minimum: 1 }), { minItems: 2, maxItems: 2 }),
});

export async function readPi05LeRobot(
  dir: string,
  tensors: ReadonlyMap<string, Stored>,
  licence: string | undefined,
): Promise<Found | Problem> {
  const read = await readLeRobot(dir, Config, licence);
  if (read instanceof Problem) return read;
  const { path, config, views, processors, state, files, policy } = read;
  const sizes = sizesOf(tensors);
  const side = Math.sqrt(sizes.patches) * sizes.vision.patch;
  return {
    ...{ layout: "LeRobot pi0.5", title: "pi0.5", files, policy },
    tokenizer: {
      files: ["tokenizer.json", "tokenizer.model"],
      ...PALIGEMMA_TOKENS,
      rows: sizes.language.vocabulary ?? 0,
    },
    isUnused,
    table: pi05Table(sizes, tensors),
    describe: (robot) => {
      const isFitting = config.image_resolution.every((edge) => edge === side);
      const fault =
        flowFault(read, "pi05_prepare_state_tokenizer_processor_step") ??
        (isFitting
          ? undefined
          : `/image_resolution is ${config.image_resolution}, expected ${side},${side}, as the tower has positions`);
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
