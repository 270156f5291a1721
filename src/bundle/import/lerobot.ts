/** What the folder of every policy of LeRobot says in the same words: its configuration, its processors, its pictures and columns. */
import { join } from "node:path";
import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import { readJson } from "../schema.ts";
import { type FeatureNorm, type Processors, readProcessors } from "./processors.ts";
import { type Policy, shortKey } from "./robot-file.ts";

export const ADVICE = "name the folder of a checkpoint that LeRobot 0.6 reads, or fetch it again";
export const STATE = "observation.state";

const Feature = Type.Object({
  type: Type.String(),
  shape: Type.Array(Type.Integer({ minimum: 1, maximum: 65_536 }), { minItems: 1 }),
});
/** Fields of `config.json`; those of one value ask for something that graphs have not. */
export const LEROBOT_FIELDS = {
  input_features: Type.Record(Type.String(), Feature),
  output_features: Type.Object({ action: Feature }),
  chunk_size: Type.Integer({ minimum: 1 }),
  n_obs_steps: Type.Optional(Type.Literal(1)),
  action_feature_names: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String())])),
};
type Fields = Static<TObject<typeof LEROBOT_FIELDS>>;

/** A folder that was read, and what a family reads of its configuration. */
export interface LeRobot<Config> {
  /** Path of the configuration. */
  readonly path: string;
  readonly config: Config;
  /** Keys of the pictures, in the policy's order. */
  readonly views: readonly string[];
  readonly processors: Processors;
  readonly state: FeatureNorm;
  readonly files: readonly string[];
  readonly policy: Policy;
}

export async function readLeRobot<S extends TSchema & { static: Fields }>(
  dir: string,
  schema: S,
  licence: string | undefined,
): Promise<LeRobot<Static<S>> | Problem> {
  const path = join(dir, "config.json");
  const config = await readJson(path, schema, ADVICE);
  if (config instanceof Problem) return config;
  const processors = await readProcessors(dir);
  if (processors instanceof Problem) return processors;
  const state = processors.observation(STATE);
  if (state instanceof Problem) return state;
  const { input_features: features, output_features, action_feature_names: names } = config as Fields;
  const views = Object.keys(features).filter((key) => features[key]?.type === "VISUAL");
  return {
    ...{ path, config, views, processors, state },
    files: ["config.json", ...processors.files],
    policy: {
      views,
      empty: views.filter((key) => shortKey(key).startsWith("empty_camera_")),
      stateColumns: features[STATE]?.shape[0] ?? 0,
      actionColumns: output_features.action.shape[0] ?? 0,
      licence,
      actionNames: names ?? [],
      isRelative: processors.isRelative,
      renamed: processors.renamed,
    },
  };
}

/** What the processors ask for that a policy of text and flow has not: its text is made by the step `text`, its pictures are as they are. */
export function flowFault({ views, processors }: LeRobot<unknown>, text: Processors["text"]): string | undefined {
  if (processors.text !== text || processors.tokenizer === undefined)
    return `policy_preprocessor.json has no ${text} with a tokenizer_processor behind it`;
  const normalised = views.find((key) => {
    const norm = processors.observation(key);
    return norm instanceof Problem || norm.column.norm !== "none";
  });
  return normalised && `${normalised} is normalised, expected IDENTITY`;
}
