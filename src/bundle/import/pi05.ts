/** pi0.5 as LeRobot and openpi publish it: the facts of both layouts, where they differ as data. */
import type { Architecture, Facts } from "../architecture.ts";
import { columnsOf, type Described } from "./described.ts";
import type { Sizes } from "./pi05-weights.ts";
import type { FeatureNorm } from "./processors.ts";
import { type Robot, shortKey } from "./robot-file.ts";

/** What differs between the two layouts. */
export interface Pi05 {
  readonly sizes: Sizes;
  readonly rows: number;
  readonly steps: number;
  readonly tokensMax: number;
  readonly state: FeatureNorm;
  readonly action: FeatureNorm;
  /** Keys of the pictures, in the order in which the policy has them when a robot shows these. */
  viewsFor(shown: readonly string[]): readonly string[];
  readonly filter: NonNullable<Facts["image"]["filter"]>;
  /** The times of the flow, where they are not equal steps in float64. */
  readonly times: readonly number[] | undefined;
}

/** Lengths that a prompt is padded to before the longest: fewer tokens for the same rows, since padding is masked. */
const BUCKETS = [64, 96, 128];
/** Special tokens of PaliGemma's tokenizer. Hugging Face's file has `<image>` behind the table. */
export const PALIGEMMA_TOKENS = { tokens: { "<pad>": 0, "<bos>": 2 }, behindTable: 1 } as const;
const BINS = 256;
/** Observations that run together. */
const BATCH = 2;

export function describePi05(policy: Pi05, robot: Robot): Described {
  const { sizes, rows, steps, tokensMax } = policy;
  const { patch } = sizes.vision;
  const side = Math.round(Math.sqrt(sizes.patches));
  const views = policy.viewsFor(robot.cameras.map(({ key }) => key)).map((key) => {
    return robot.cameras.find((camera) => camera.key === shortKey(key))?.name ?? shortKey(key);
  });
  const half = [0.5, 0.5, 0.5];
  const { state, action, norm } = columnsOf(robot, policy.state, policy.action);
  const buckets = BUCKETS.filter((length) => length < tokensMax);
  const facts: Described["facts"] = {
    family: "flow-vla",
    reference: false,
    stateful: false,
    frames: { first: 1, later: 1 },
    image: {
      ...{ width: side * patch, height: side * patch, resize: "pad", filter: policy.filter, tokens: sizes.patches },
      ...{ mean: half, std: half },
    },
    state: { ...state, width: state.columns.length },
    prompt: {
      tokens_max: tokensMax,
      ...(buckets.length > 0 && { buckets }),
      pad_id: PALIGEMMA_TOKENS.tokens["<pad>"],
      parts: [
        { kind: "token", id: PALIGEMMA_TOKENS.tokens["<bos>"] },
        // `_` and the newline become spaces, runs of white space stay (openpi `tokenizer.py`, LeRobot `processor_pi05.py`).
        {
          kind: "template",
          text: "Task: {instruction}, State: {state};\nAction: ",
          bins: BINS,
          clean: ["strip", "underscores", "newlines"],
        },
      ],
    },
    action: { ...action, rows, width: sizes.actionWidth, rotation6d: [] },
    flow: { t_start: 1, t_end: 0, steps, shift: 1, ...(policy.times && { times: [...policy.times] }) },
    guidance: null,
    memory: null,
    batch: BATCH,
  };
  const { vision, language, expert } = sizes;
  const architecture: Architecture = {
    seed: 0,
    tokenizer: { merges: 0 },
    vision,
    language,
    expert,
    inputs: { views: [...views] },
  };
  return { facts, architecture, norm };
}
