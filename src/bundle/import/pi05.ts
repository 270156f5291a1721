/** pi0.5 as LeRobot and openpi publish it: the facts of both layouts, where they differ as data. */
import type { Architecture, Facts } from "../architecture.ts";
import { columnsOf, type Described, IMPORTED, ONE_SHOT, PADDED } from "./described.ts";
import type { Sizes } from "./pi05-weights.ts";
import type { FeatureNorm } from "./processors.ts";
import { cameraOf, type Robot, shortKey } from "./robot-file.ts";

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
export const PALIGEMMA_TOKENS = { tokens: { "<pad>": 0, "<bos>": 2 }, before: [2], behindTable: 1 } as const;
const BINS = 256;

export function describePi05(policy: Pi05, robot: Robot): Described {
  const { sizes, rows, steps, tokensMax } = policy;
  const side = Math.round(Math.sqrt(sizes.patches)) * sizes.vision.patch;
  const shown = policy.viewsFor(robot.cameras.map(({ key }) => key));
  const views = shown.map((key) => cameraOf(robot, key) ?? shortKey(key));
  const { state, action, norm } = columnsOf(robot, policy.state, policy.action);
  const buckets = BUCKETS.filter((length) => length < tokensMax);
  const facts: Described["facts"] = {
    ...ONE_SHOT,
    family: "flow-vla",
    image: { ...PADDED, width: side, height: side, filter: policy.filter, tokens: sizes.patches },
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
  };
  const { vision, language, expert } = sizes;
  const architecture: Architecture = { ...IMPORTED, vision, language, expert, inputs: { views } };
  return { facts, architecture, norm };
}
