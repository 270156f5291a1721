/**
 * LeRobot's processor files (`processor/`, 0.6.1) as facts: what is done to an observation before a policy sees it, and to its rows after. The
 * order of the steps is their meaning, so one that is unknown, twice there or in another order is refused by name.
 */
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Problem } from "../../std/problem.ts";
import type { FactFields } from "../manifest-facts.ts";
import { readJson, schemaFault } from "../schema.ts";
import { isFloat, TensorFile, valuesOf } from "./safetensors.ts";

const Pipeline = Type.Object({
  steps: Type.Array(
    Type.Object({
      registry_name: Type.String(),
      config: Type.Record(Type.String(), Type.Unknown()),
      state_file: Type.Optional(Type.String({ pattern: "^[A-Za-z0-9_-][A-Za-z0-9._-]*$" })),
    }),
  ),
});
type Step = Static<typeof Pipeline>["steps"][number];

const MODES = ["IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES", "QUANTILE10"] as const;
const Normalizer = Type.Object({
  eps: Type.Number({ minimum: 0, maximum: 1 }),
  features: Type.Record(Type.String(), Type.Object({ type: Type.String() })),
  norm_map: Type.Record(Type.String(), Type.Union(MODES.map((mode) => Type.Literal(mode)))),
  normalize_observation_keys: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String())])),
});
type Normalizer = Static<typeof Normalizer>;

const Relative = Type.Object({
  enabled: Type.Boolean(),
  exclude_joints: Type.Optional(Type.Array(Type.String())),
  action_names: Type.Optional(Type.Union([Type.Null(), Type.Array(Type.String())])),
});
const Absolute = Type.Object({ enabled: Type.Boolean() });
const Rename = Type.Object({ rename_map: Type.Record(Type.String(), Type.String()) });
const Tokenizer = Type.Object({
  tokenizer_name: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  max_length: Type.Integer({ minimum: 1 }),
  padding: Type.String(),
  padding_side: Type.Literal("right"),
  truncation: Type.Literal(true),
});

/** Steps that change nothing that a bundle has to know. */
const NEUTRAL: readonly string[] = ["to_batch_processor", "device_processor"];
/** Steps that make the text, each of one family. */
const TEXTS = [
  "pi05_prepare_state_tokenizer_processor_step",
  "pi0_new_line_processor",
  "smolvla_new_line_processor",
] as const;
type TextStep = (typeof TEXTS)[number];

const BEFORE = [
  "rename_observations_processor",
  "relative_actions_processor",
  "normalizer_processor",
  "tokenizer_processor",
  ...TEXTS,
];
const AFTER = ["unnormalizer_processor", "absolute_actions_processor"];
/** Pairs of steps of which the first comes before the second wherever both are there. */
const ORDER: readonly (readonly [string, string])[] = [
  ["rename_observations_processor", "normalizer_processor"],
  ["relative_actions_processor", "normalizer_processor"],
  ["normalizer_processor", "pi05_prepare_state_tokenizer_processor_step"],
  ...TEXTS.map((text) => [text, "tokenizer_processor"] as const),
  ["unnormalizer_processor", "absolute_actions_processor"],
];

type Column = Pick<Static<(typeof FactFields)["state"]>["columns"][number], "norm" | "epsilon"> & {
  readonly epsilon_rule?: "zero_range";
};

/** How one feature is normalised, and its statistics by the names that `norm.json` has for them. */
export interface FeatureNorm {
  /** Fields of every column. */
  readonly column: Column;
  readonly statistics: Readonly<Record<string, readonly number[]>>;
}

export interface Processors {
  /** Files that were read, by their names in the folder. */
  readonly files: readonly string[];
  /** The normalisation of an observation's feature by its key, such as `observation.state`. */
  observation(key: string): FeatureNorm | Problem;
  readonly action: FeatureNorm;
  /** Whether the column of an action is relative to the state column of the same number. */
  isRelative(column: number): boolean;
  /** The policy's key of what a robot calls otherwise. */
  readonly renamed: Readonly<Record<string, string>>;
  readonly text: TextStep | undefined;
  readonly tokenizer: Static<typeof Tokenizer> | undefined;
}

const ADVICE = "fetch the checkpoint again, or have this tendon learn the step";

/** The key of actions in the statistics. */
const ACTION = "action";
const PIPELINES = ["policy_preprocessor.json", "policy_postprocessor.json"] as const;

/** Reads `policy_preprocessor.json` and `policy_postprocessor.json` of `dir`, and the statistics beside them. */
export async function readProcessors(dir: string): Promise<Processors | Problem> {
  const before = await readSteps(join(dir, PIPELINES[0]), BEFORE);
  if (before instanceof Problem) return before;
  const after = await readSteps(join(dir, PIPELINES[1]), AFTER);
  if (after instanceof Problem) return after;
  const normalizer = await normsOf(dir, PIPELINES[0], before.get("normalizer_processor"));
  if (normalizer instanceof Problem) return normalizer;
  const back = await normsOf(dir, PIPELINES[1], after.get("unnormalizer_processor"));
  if (back instanceof Problem) return back;
  const action = back(ACTION);
  if (action instanceof Problem) return action;
  const relative = configOf(before.get("relative_actions_processor"), Relative) ?? { enabled: false };
  const absolute = configOf(after.get("absolute_actions_processor"), Absolute) ?? { enabled: false };
  const rename = configOf(before.get("rename_observations_processor"), Rename) ?? { rename_map: {} };
  const tokenizer = configOf(before.get("tokenizer_processor"), Tokenizer);
  for (const one of [relative, absolute, rename, tokenizer]) if (one instanceof Problem) return one;
  const [made, undone, { rename_map: renamed }] = [relative, absolute, rename] as [
    Static<typeof Relative>,
    Static<typeof Absolute>,
    Static<typeof Rename>,
  ];
  if (made.enabled !== undone.enabled)
    return new Problem(
      `${dir}: relative_actions_processor is ${made.enabled ? "on" : "off"} and absolute_actions_processor is not, expected both; ${ADVICE}`,
    );
  const isExcluded = (name: string) =>
    (made.exclude_joints ?? []).some((word) => word !== "" && name.toLowerCase().includes(word.toLowerCase()));
  const states = [...before.values(), ...after.values()].flatMap(({ state_file: state }) => (state ? [state] : []));
  return {
    files: [...PIPELINES, ...states],
    observation: normalizer,
    action,
    isRelative: (column) => made.enabled && !isExcluded(made.action_names?.[column] ?? ""),
    renamed,
    text: TEXTS.find((name) => before.has(name)),
    tokenizer: tokenizer as Static<typeof Tokenizer> | undefined,
  };
}

/** The steps of a pipeline by their names, without the neutral ones. */
async function readSteps(path: string, known: readonly string[]): Promise<Map<string, Step> | Problem> {
  const pipeline = await readJson(path, Pipeline, ADVICE);
  if (pipeline instanceof Problem) return pipeline;
  const steps = new Map<string, Step>();
  for (const step of pipeline.steps) {
    const name = step.registry_name;
    if (NEUTRAL.includes(name)) continue;
    if (!known.includes(name))
      return new Problem(
        `${path} has the step ${name}, expected ${known.join(", ")} or ${NEUTRAL.join(", ")}; ${ADVICE}`,
      );
    if (steps.has(name)) return new Problem(`${path} has ${name} twice, expected it once; ${ADVICE}`);
    steps.set(name, step);
  }
  const order = [...steps.keys()];
  const swapped = ORDER.find(([first, second]) => steps.has(second) && order.indexOf(first) > order.indexOf(second));
  if (swapped) return new Problem(`${path} has ${swapped[0]} after ${swapped[1]}, expected it before; ${ADVICE}`);
  return steps;
}

/** The configuration of a step; undefined where the step is not there. */
function configOf<S extends TSchema>(step: Step | undefined, schema: S): Static<S> | Problem | undefined {
  if (step === undefined) return undefined;
  const fault = schemaFault(schema, step.config);
  return fault === undefined ? step.config : new Problem(`${step.registry_name}: ${fault}; ${ADVICE}`);
}

/** The norm of a feature by its key. */
type Norms = (key: string) => FeatureNorm | Problem;

async function normsOf(dir: string, pipeline: string, step: Step | undefined): Promise<Norms | Problem> {
  if (step === undefined) return () => UNCHANGED;
  const config = configOf(step, Normalizer);
  if (config === undefined || config instanceof Problem) return config ?? new Problem(`no ${step}`);
  const statistics =
    step.state_file === undefined ? new Map<string, number[]>() : readStatistics(join(dir, step.state_file));
  if (statistics instanceof Problem) return statistics;
  return (key) => normOf(config, statistics, key, join(dir, pipeline));
}

const UNCHANGED: FeatureNorm = { column: { norm: "none" }, statistics: {} };

/** What each mode is called in a manifest, and the statistics that it reads under the names that `norm.json` has for them. */
const FORMS = {
  MEAN_STD: ["mean_std", { mean: "mean", std: "std" }],
  MIN_MAX: ["min_max", { min: "min", max: "max" }],
  QUANTILES: ["quantile", { q01: "q01", q99: "q99" }],
  QUANTILE10: ["quantile", { q01: "q10", q99: "q90" }],
} as const;

function normOf(
  { eps, features, norm_map, normalize_observation_keys: only }: Normalizer,
  statistics: ReadonlyMap<string, number[]>,
  key: string,
  path: string,
): FeatureNorm | Problem {
  // `features` and the list of keys are about observations only (`_normalize_action`).
  const type = key === ACTION ? "ACTION" : (features[key]?.type ?? "");
  const mode = norm_map[type] ?? "IDENTITY";
  const isLeftOut = key !== ACTION && only !== undefined && only !== null && !only.includes(key);
  if (mode === "IDENTITY" || isLeftOut) return UNCHANGED;
  if (![...statistics.keys()].some((name) => name.startsWith(`${key}.`))) {
    // LeRobot lets a feature without statistics pass unchanged (`_apply_transform`): rows of −1 … 1 would be sent as robot units.
    if (type === "VISUAL") return UNCHANGED;
    return new Problem(
      `${path} says ${mode} of ${key} and has no statistics of it; save the processors with the statistics of your data set`,
    );
  }
  const [norm, names] = FORMS[mode];
  const values: Record<string, readonly number[]> = {};
  for (const [ours, theirs] of Object.entries(names)) {
    const found = statistics.get(`${key}.${theirs}`);
    if (found === undefined)
      return new Problem(`the statistics have no ${key}.${theirs}, which ${mode} reads; ${ADVICE}`);
    values[ours] = found;
  }
  return { column: { norm, epsilon: eps, epsilon_rule: "zero_range" }, statistics: values };
}

function readStatistics(path: string): Map<string, number[]> | Problem {
  const file = TensorFile.open(path);
  if (file instanceof Problem) return file;
  const values = new Map(
    [...file.tensors].filter(([, stored]) => isFloat(stored)).map(([name, stored]) => [name, [...valuesOf(stored)]]),
  );
  file.close();
  return values;
}
