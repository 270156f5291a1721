/**
 * The robot file of an import, TOML: what no checkpoint says. Where it is silent and it matters nothing is guessed: the problem prints the lines
 * to fill in.
 */
import { type Static, Type } from "@sinclair/typebox";
import { readText } from "../../std/file.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { closed, oneOf, reason, schemaFault } from "../schema.ts";

const Name = Type.String({ minLength: 1 });
const Count = Type.Integer({ minimum: 1, maximum: 1024 });
const Limit = Type.Optional(Type.Number({ exclusiveMinimum: 0 }));

/** Arrays of `robot_state`. */
const ARRAYS = ["joint_position", "gripper_position", "cartesian_position"] as const;

const Column = closed({
  name: Name,
  unit: Name,
  /** The array of `robot_state` and the place in it; not of a `vector`, whose array are the columns. */
  from: Type.Optional(oneOf(...ARRAYS)),
  index: Type.Optional(Type.Integer({ minimum: 0, maximum: 63 })),
});

const ActionColumn = closed({
  name: Name,
  unit: Name,
  min: Type.Number(),
  max: Type.Number(),
  max_jump: Limit,
  max_step: Limit,
  /** The name of the state column that is added to it, or "none". */
  relative_to: Type.Optional(Name),
});

const RobotFile = closed({
  title: Type.Optional(Name),
  licence: Type.Optional(Name),
  /** Rows a second. */
  hz: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  out_of_range: Type.Optional(oneOf("clamp", "fail")),
  /** In wire order; `key` is the policy's name of the picture. */
  cameras: Type.Optional(Type.Array(closed({ name: Name, key: Name }), { minItems: 1 })),
  /** Pictures of the policy that this robot has no camera for. */
  missing_cameras: Type.Optional(Type.Array(Name)),
  state_kind: Type.Optional(oneOf("joint", "cartesian", "vector")),
  state: Type.Optional(Type.Array(Column)),
  actions: Type.Optional(Type.Array(ActionColumn)),
  /** Heads of a model that the checkpoint only names. */
  backbone: Type.Optional(closed({ heads: Count, vision_heads: Count })),
});
type RobotFile = Static<typeof RobotFile>;

interface Quantiles {
  readonly q01: readonly number[];
  readonly q99: readonly number[];
}

/** What a checkpoint says of its robot, with which a robot file must agree. */
export interface Policy {
  /** Keys of the pictures in the policy's order, and those of them that no robot has. */
  readonly views: readonly string[];
  readonly empty: readonly string[];
  readonly stateColumns: number;
  readonly actionColumns: number;
  /** Present where the checkpoint's columns may be more than the robot's: the rest are padding, which never changes. */
  readonly quantiles?: Readonly<Record<"state" | "action", Quantiles>>;
  /** Names of the action columns, where the checkpoint has them. */
  readonly actionNames: readonly string[];
  /** Whether an action column is relative to the state column of the same number; undefined where the checkpoint does not say. */
  readonly isRelative: ((column: number) => boolean) | undefined;
  readonly licence: string | undefined;
  /** The model that it was made of, where nobody has said yet how many heads that has. */
  readonly unknownBackbone?: string;
  /** Keys that observations may have in place of the policy's. */
  readonly renamed?: Readonly<Record<string, string>>;
}

/** A robot that says all that its policy needs. */
export interface Robot {
  readonly title: string | undefined;
  readonly licence: string;
  readonly hz: number;
  readonly outOfRange: "clamp" | "fail";
  readonly cameras: readonly { readonly name: string; readonly key: string }[];
  readonly stateKind: "joint" | "cartesian" | "vector";
  readonly state: readonly Static<typeof Column>[];
  readonly backbone: RobotFile["backbone"];
  /** `relativeTo`: number of a state column. */
  readonly actions: readonly (Static<typeof ActionColumn> & { readonly relativeTo: number | null })[];
}

/** Pictures are named with and without this. */
const PICTURES = "observation.images.";
export const shortKey = (key: string): string => (key.startsWith(PICTURES) ? key.slice(PICTURES.length) : key);

/** The name on the wire of a policy's picture; undefined if the robot has no camera for it. */
export function cameraOf({ cameras }: Pick<Robot, "cameras">, key: string): string | undefined {
  return cameras.find((camera) => camera.key === shortKey(key))?.name;
}

/** The policy's key of a picture. */
function policyKey({ renamed = {} }: Policy, key: string): string {
  return shortKey(renamed[key] ?? renamed[PICTURES + key] ?? key);
}

/** Reads the file at `path` and checks it against what the policy is. */
export async function readRobot(path: string, policy: Policy): Promise<Robot | Problem> {
  let text: string | undefined;
  let file: unknown;
  try {
    text = await readText(path);
    file = Bun.TOML.parse(text ?? "");
  } catch (error) {
    return new Problem(`${path} cannot be read as TOML (${reason(error)}); correct it`, EXIT.usage);
  }
  const fault = schemaFault(RobotFile, file);
  if (fault !== undefined) return new Problem(`${path}: ${fault}; correct it`, EXIT.usage);
  const robot = file as RobotFile;
  const wrong = contradictions(robot, policy);
  if (wrong.length > 0) return new Problem(`${path} does not fit the checkpoint: ${wrong.join("; ")}`, EXIT.usage);
  const lines = template(robot, policy);
  if (lines.length > 0) {
    const what = text === undefined ? "is not there" : "leaves out what it must say";
    const why = "no checkpoint says it, and nothing is guessed";
    return new Problem(`${path} ${what}: ${why}; fill in these lines:\n${lines.join("\n")}`, EXIT.usage);
  }
  return complete(robot, policy);
}

/** What the file says otherwise than the checkpoint. */
function contradictions(
  { cameras = [], missing_cameras: missing = [], state = [], state_kind: kind, actions = [], backbone }: RobotFile,
  policy: Policy,
): string[] {
  const given = [...cameras.map(({ key }) => key), ...missing];
  const keys = given.map((key) => policyKey(policy, key));
  const views = policy.views.map(shortKey);
  const names = state.map(({ name }) => name);
  return [
    ...given.map(shortKey).flatMap((key, at) => {
      if (key === keys[at] || !views.includes(key)) return [];
      const made = `${key} is a picture of the policy, and rename_map makes it ${keys[at]}`;
      return [`${made}: name a key that is not both, or take it out of rename_map in policy_preprocessor.json`];
    }),
    ...keys.filter((key) => !views.includes(key)).map((key) => `it has no picture ${key}, only ${views.join(", ")}`),
    ...keys.filter((key, at) => keys.indexOf(key) < at).map((key) => `the picture ${key} is there twice`),
    ...wrongCount("state", state.length, policy.stateColumns, policy),
    ...wrongCount("action", actions.length, policy.actionColumns, policy),
    ...(kind === "vector" ? state.filter(({ from }) => from !== undefined) : []).map(
      ({ name }) => `${name} has from, which a vector has not`,
    ),
    ...(backbone && policy.unknownBackbone === undefined ? ["backbone, which it need not be told"] : []),
    ...actions.flatMap(({ name, relative_to: to }, at) => {
      if (to === undefined) return [];
      if (to !== "none" && !names.includes(to)) return [`${name} is relative to ${to}, which is no state column`];
      const theirs = policy.isRelative?.(at);
      const expected = theirs ? (names[at] ?? "a state column") : "none";
      return theirs === undefined || to === expected
        ? []
        : [`${name} is relative to ${to}, but the checkpoint says ${expected}`];
    }),
  ];
}

function wrongCount(side: "state" | "action", given: number, most: number, { quantiles }: Policy): string[] {
  if (given > most) return [`${given} ${side} columns, expected ${most}`];
  const { q01 = [], q99 = [] } = quantiles?.[side] ?? {};
  const used = range(most).filter((at) => q01[at] !== q99[at]);
  const left = used.find((at) => at >= given);
  if (left === undefined || given === 0) return [];
  const span = `${q01[left]} to ${q99[left]}`;
  return [
    `${given} ${side} columns, but the statistics of column ${left} are ${span}: expected ${(used.at(-1) ?? left) + 1}`,
  ];
}

/** The lines that are missing in a file; none where it is complete. */
function template(robot: RobotFile, policy: Policy): string[] {
  const { cameras = [], missing_cameras: missing = [], state = [], actions = [] } = robot;
  const known = [...cameras.map(({ key }) => key), ...missing, ...policy.empty].map((key) => policyKey(policy, key));
  const views = policy.views.map(shortKey).filter((key) => !known.includes(key));
  const isVector = robot.state_kind === "vector";
  const wires = robot.state_kind === undefined || isVector ? "" : ', from = "", index = 0';
  const relative = policy.isRelative === undefined ? ', relative_to = ""' : "";
  const stateName = (at: number) => state[at]?.name ?? policy.actionNames[at] ?? "";
  const actionName = (at: number) => actions[at]?.name ?? policy.actionNames[at] ?? "";
  const [stateColumns, actionColumns] = [
    columnsOf(state, policy.stateColumns, policy),
    columnsOf(actions, policy.actionColumns, policy),
  ];
  const badState = range(stateColumns).some((at) => {
    const column = state[at];
    const isPlaced = column?.from !== undefined && column.index !== undefined;
    return column === undefined || (robot.state_kind !== undefined && !isVector && !isPlaced);
  });
  const badActions = range(actionColumns).some(
    (at) => actions[at] === undefined || (relative !== "" && actions[at]?.relative_to === undefined),
  );
  return [
    ...(robot.licence === undefined && policy.licence === undefined ? ['licence = ""  # of the weights'] : []),
    ...(robot.hz === undefined ? ["hz = 0  # rows a second"] : []),
    ...(robot.out_of_range === undefined
      ? ['out_of_range = "clamp"  # or "fail": a chunk with a value outside its range']
      : []),
    ...(robot.state_kind === undefined
      ? [
          'state_kind = "vector"  # robot_state.state has the columns below; or "joint", "cartesian" as in docs/robots.md',
        ]
      : []),
    ...(policy.unknownBackbone !== undefined && robot.backbone === undefined
      ? [
          `backbone = { heads = 0, vision_heads = 0 }  # num_attention_heads of text_config and vision_config of ${policy.unknownBackbone}`,
        ]
      : []),
    ...list("cameras", views, (key) => `{ name = "", key = "${key}" }`, "or in missing_cameras: no camera"),
    ...list(
      "state",
      badState ? range(stateColumns) : [],
      (at) => `{ name = "${stateName(at)}", unit = ""${wires} }`,
      `in the order of the checkpoint${wires && `; from: ${ARRAYS.join(", ")}`}`,
    ),
    ...list(
      "actions",
      badActions ? range(actionColumns) : [],
      (at) => `{ name = "${actionName(at)}", unit = "", min = 0.0, max = 0.0${relative} }`,
      `${relative && 'relative_to: the name of a state column, or "none"; '}max_jump, max_step: where a sudden move must be refused`,
    ),
  ];
}

function list<Item>(name: string, items: readonly Item[], line: (item: Item) => string, note: string): string[] {
  return items.length === 0 ? [] : [`${name} = [  # ${note}`, ...items.map((item) => `  ${line(item)},`), "]"];
}

function complete(robot: RobotFile, policy: Policy): Robot | Problem {
  const { licence = policy.licence, hz, out_of_range: outOfRange, state_kind: stateKind } = robot;
  if (licence === undefined || hz === undefined || outOfRange === undefined || stateKind === undefined)
    return new Problem("the robot file leaves out what it must say");
  const state = robot.state ?? [];
  const names = state.map(({ name }) => name);
  return {
    ...{ title: robot.title, licence, hz, outOfRange, stateKind, state, backbone: robot.backbone },
    cameras: (robot.cameras ?? []).map(({ name, key }) => ({ name, key: policyKey(policy, key) })),
    actions: (robot.actions ?? []).map((column, at) => {
      const { relative_to: to = "none" } = column;
      const theirs = policy.isRelative?.(at);
      const own = to === "none" ? null : names.indexOf(to);
      return { ...column, relativeTo: theirs === undefined ? own : theirs ? at : null };
    }),
  };
}

/** The columns that a file must have. */
function columnsOf(given: readonly unknown[], most: number, { quantiles }: Policy): number {
  return quantiles && given.length > 0 ? given.length : most;
}

const range = (count: number): number[] => [...Array(count).keys()];
