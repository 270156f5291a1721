/** What a manifest says of a model apart from its graphs: cameras, image, state, prompt, action, flow, memory. */
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../limits.ts";
import { closed, oneOf } from "./schema.ts";

const NormFields = {
  /**
   * Normalisation of a column by `norm.json`: `quantile` (x − q01) / (q99 − q01 + epsilon) · 2 − 1, `min_max` the same of min and max,
   * `mean_std` (x − mean) / (std + epsilon).
   */
  norm: oneOf("quantile", "min_max", "mean_std", "none"),
  /** Absent, 1e-6, as openpi and MolmoAct2 have it. LeRobot's pipelines say theirs, 1e-8. */
  epsilon: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  /**
   * What the epsilon does, and the precision of the publisher that does so, on which a bin of the state depends.
   * - `added`, which absence means: as above, both ways, in float64 (openpi).
   * - `zero_range`, in float32 (LeRobot): it replaces a range of exactly 0 both ways. It is added to a deviation on the way to the model; on
   *   the way back the deviation stands alone.
   * - `at_least`, in float32 (MolmoAct2; GR00T with 0): a range or deviation below it is so large on the way to the model. A range whose `min`
   *   is its `max` gives the model 0. On the way back nothing is changed.
   */
  epsilon_rule: Type.Optional(oneOf("added", "zero_range", "at_least")),
  /** The normalised value is kept inside: of a state before the model reads it, of an action as the model gives it (GR00T: −1 and 1). */
  clip: Type.Optional(closed({ min: Type.Number(), max: Type.Number() })),
};

const StateColumn = closed({
  name: Type.String({ minLength: 1 }),
  unit: Type.String(),
  /** Which array of `robot_state`, and which of its values. */
  from: oneOf("joint_position", "gripper_position", "cartesian_position", "state"),
  index: Type.Integer({ minimum: 0, maximum: 63 }),
  ...NormFields,
});

const ActionColumn = closed({
  name: Type.String({ minLength: 1 }),
  unit: Type.String(),
  ...NormFields,
  /** Index of the state column that a relative action is added to; null for an absolute one. */
  relative_to: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
  /** Allowed range in robot units, inclusive. */
  min: Type.Number(),
  max: Type.Number(),
  /**
   * The most that row 0 may differ from the state it was computed for (`relative_to`, or the state column of the same name), and the
   * most from one row to the next, both in robot units, after the range. A chunk that passes one is `model_failure` and is never sent.
   * If a chunk continues rows, the first new one is judged by the last of them in place of the state.
   */
  max_jump: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  max_step: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
});

const PromptPart = Type.Union([
  /** One fixed token, for example the begin-of-sequence token. */
  closed({ kind: Type.Literal("token"), id: Type.Integer({ minimum: 0 }) }),
  /** The instruction: trimmed, each run of white space one space, tokenised without special tokens. */
  closed({ kind: Type.Literal("instruction") }),
  /** One token per state column: id = base + round((clamp(x, −1, 1) + 1) / 2 · (bins − 1)), x normalised, ties to even. */
  closed({
    kind: Type.Literal("state_tokens"),
    base: Type.Integer({ minimum: 0 }),
    bins: Type.Integer({ minimum: 2, maximum: 65_536 }),
  }),
  /**
   * One text, tokenised as a whole: `{instruction}`, cleaned, and behind it, after a space, perhaps `{state}`: per state column
   * digitize(x, linspace(−1, 1, bins + 1)[:−1]) − 1 of x normalised, −1 to bins − 1, joined by spaces (openpi's pi0.5).
   */
  closed({
    kind: Type.Literal("template"),
    text: Type.String({ pattern: "^[^{}]*\\{instruction\\}[^{}]*( \\{state\\}[^{}]*)?$" }),
    /** With `{state}` only. */
    bins: Type.Optional(Type.Integer({ minimum: 2, maximum: 4096 })),
    /**
     * The steps of cleaning, in their order. Absent, `underscores`, `words`. White space is what Python's `isspace` says.
     * - `strip`: no white space at either end. pi0.5 has `strip`, `underscores`, `newlines`, so that runs of spaces and tabs stay.
     * - `underscores`: each `_` becomes a space. `newlines`: each line feed becomes one.
     * - `words`: each run of white space becomes one space, and none is at either end.
     * - `end_newline`: a line feed at the end, where there is none (LeRobot's pi0 and SmolVLA).
     */
    clean: Type.Optional(Type.Array(oneOf("strip", "underscores", "newlines", "words", "end_newline"))),
  }),
]);

/** Known before the graphs exist: `models/<name>/model.json` has these and `architecture`. */
export const FactFields = {
  /** Served id, for example `vendorB/molmoact2:yam`; served-id.ts says which there can be. */
  id: Type.String({ minLength: 1, maxLength: 128 }),
  title: Type.String({ minLength: 1 }),
  licence: Type.String({ minLength: 1 }),
  /** The origin of graphs and weights, one or two sentences for people. */
  source: Type.String({ minLength: 1 }),
  family: oneOf("flow-vla", "world-action", "act"),
  /** True: random weights, which is shown wherever a user could meet them. */
  reference: Type.Boolean(),
  /** True: a request with images needs a `session_id`. */
  stateful: Type.Boolean(),
  /** Camera names in wire order. */
  cameras: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 4 }),
  /** Frames per camera: on a session's first request, and later. */
  frames: closed({ first: Type.Integer({ minimum: 1, maximum: 4 }), later: Type.Integer({ minimum: 1, maximum: 4 }) }),
  image: closed({
    width: Type.Integer({ minimum: 8, maximum: 1024 }),
    height: Type.Integer({ minimum: 8, maximum: 1024 }),
    /**
     * `pad`: whole picture, black bars; `stretch`: both edges to size; `crop`: fill, cut the rest centred; `exact`: a frame of another
     * size is refused (ACT). A padded picture has int(edge / max(width ratio, height ratio)) pixels, as openpi and LeRobot have it.
     */
    resize: oneOf("pad", "stretch", "crop", "exact"),
    /**
     * The place of the picture with `pad`. Absent, `centre`: bars on both sides, the odd pixel right or below (openpi).
     * `bottom_right`: bars left or above (LeRobot's SmolVLA, which pads at the top left).
     */
    place: Type.Optional(oneOf("centre", "bottom_right")),
    /** Prefix tokens that one frame becomes. */
    tokens: Type.Integer({ minimum: 1 }),
    /**
     * Bit-equal to its library; absent with `exact`. `pillow-bilinear`, `pillow-bicubic`: antialiased, 8-bit values, horizontal then
     * vertical. `torch-bilinear`: PyTorch's two taps an edge without antialias, in f32 of value / 255, unrounded, for images in f32;
     * `torch-bilinear-u8`: the same of 8-bit values, rounded half to even. `area`: OpenCV's INTER_AREA. A frame of the size is not filtered.
     */
    filter: Type.Optional(oneOf("pillow-bilinear", "pillow-bicubic", "torch-bilinear", "torch-bilinear-u8", "area")),
    /** Per RGB channel: (value / 255 − mean) / std. */
    mean: Type.Array(Type.Number(), { minItems: 3, maxItems: 3 }),
    std: Type.Array(Type.Number({ exclusiveMinimum: 0 }), { minItems: 3, maxItems: 3 }),
  }),
  state: closed({
    /** Wire shape of `robot_state`; `vector`: one array `state`, whose values are the columns in their order. */
    kind: oneOf("joint", "cartesian", "vector"),
    /** The model's vector, in order. */
    columns: Type.Array(StateColumn, { minItems: 1, maxItems: LIMITS.stateValuesMax }),
    /** Values of the `state` tensor: the columns, then zeros. */
    width: Type.Integer({ minimum: 1, maximum: LIMITS.stateValuesMax }),
  }),
  prompt: closed({
    /** Right-padded with `pad_id` to this many tokens, state tokens included. */
    tokens_max: Type.Integer({ minimum: 1, maximum: 4096 }),
    /**
     * Shorter lengths, ascending: a prompt is padded to the first that holds it, else to `tokens_max`. With them the graphs' shapes say
     * `prompt` and `prefix` in place of the two numbers.
     */
    buckets: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 4096 }), { minItems: 1, maxItems: 8 })),
    pad_id: Type.Integer({ minimum: 0 }),
    parts: Type.Array(PromptPart, { minItems: 1 }),
  }),
  action: closed({
    rows: Type.Integer({ minimum: 1, maximum: LIMITS.chunkRowsMax }),
    /** Rows per second; dt = 1 / hz. */
    hz: Type.Integer({ minimum: 1, maximum: 1000 }),
    /** `vector`, with a `vector` state: a row means what its columns are named. The other two are the specification's. */
    space: oneOf("joint_position", "cartesian_position", "vector"),
    /** Values per row inside the model, at least one for each column; the rest is padding and is cut. */
    width: Type.Integer({ minimum: 1, maximum: 64 }),
    columns: Type.Array(ActionColumn, { minItems: 1, maxItems: 64 }),
    /** First columns of rotations of six columns, two column vectors of a rotation matrix each, made orthonormal by Gram-Schmidt. */
    rotation6d: Type.Array(Type.Integer({ minimum: 0, maximum: 63 })),
    /**
     * The most rows that a chunk may continue: rows that are still being executed, which the flow holds in place as arXiv 2512.05964 trains
     * it: a graph with a `time` for each row is told of them. Absent, none.
     */
    prefix: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.chunkRowsMax - 1 })),
    /** A value outside its column's range: clamped and counted, or `model_failure`. */
    out_of_range: oneOf("clamp", "fail"),
  }),
  /**
   * Euler: `steps` equal steps from `t_start` to `t_end`, each time shifted by s(t) = shift · t / (1 + (shift − 1) · t), 1 for none;
   * x ← x + (t_next − t) · v(x, t). `times` lists the `steps` + 1 times instead, from `t_start` to about `t_end`, in float32 as a
   * publisher counts them. openpi adds −1 / steps again and again, so that 0.1 is 0.10000007.
   */
  flow: closed({
    t_start: Type.Number(),
    t_end: Type.Number(),
    steps: Type.Integer({ minimum: 1, maximum: 100 }),
    shift: Type.Number({ minimum: 1, maximum: 100 }),
    times: Type.Optional(Type.Array(Type.Number(), { minItems: 2, maxItems: 101 })),
  }),
  /** Row 0 has the instruction, row 1 an empty one: v = v₁ + scale · (v₀ − v₁) for the latents in `apply`, v = v₀ for the others. */
  guidance: Type.Union([
    closed({
      scale: Type.Number(),
      apply: Type.Array(oneOf("video", "action"), { uniqueItems: true }),
    }),
    Type.Null(),
  ]),
  /**
   * The memory of an episode, in latent frames of `tokens` tokens: `window` at most. A first observation, and one that starts the
   * window anew, adds `first`, a later one `later`.
   */
  memory: Type.Union([
    closed({
      window: Type.Integer({ minimum: 1, maximum: 4096 }),
      tokens: Type.Integer({ minimum: 1, maximum: 65_536 }),
      first: Type.Integer({ minimum: 1, maximum: 16 }),
      later: Type.Integer({ minimum: 1, maximum: 16 }),
    }),
    Type.Null(),
  ]),
  /** The largest batch: observations that are queued together run together. */
  batch: Type.Integer({ minimum: 1, maximum: 16 }),
};
