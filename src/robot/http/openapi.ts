/**
 * The routes of the robot models in words and JSON Schema. Replies are printed by hand for speed; a test checks them against
 * these schemas.
 */
import { type TSchema, Type } from "@sinclair/typebox";
import { STATIONS } from "../../engine/engine.ts";
import { withLimits } from "../../http/document/limit-text.ts";
import { errorSchema, type Header, headers, json, type Operation } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import chat from "../docs/chat.md" with { type: "text" };
import stream from "../docs/stream.md" with { type: "text" };
import { observationSchema, questionSchema } from "./checks.ts";

const EVENTS = [
  ": processing",
  'data: {"id":"gen_0VbZqBjQzeWG8jBxSHWxuTs6","object":"chat.completion.chunk","created":1795233827,"model":"vendorB/molmoact2:yam","choices":[{"index":0,"delta":{"role":"assistant","content":"{\\"session_id\\":\\"s1\\",\\"step\\":0,…}"},"finish_reason":null}]}',
  'data: {"id":"gen_0VbZqBjQzeWG8jBxSHWxuTs6","object":"chat.completion.chunk","created":1795233827,"model":"vendorB/molmoact2:yam","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":209,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens":30,"total_tokens":239}}',
  "data: [DONE]",
  "",
].join("\n\n");

const QUESTION_EXAMPLE = {
  model: "vendorB/molmoact2:yam",
  messages: [{ role: "user", content: "what do you need?" }],
};

export const chatOperation: Operation = {
  operationId: "createChatCompletion",
  summary: "One observation in, one action chunk out",
  description: withLimits(chat).trimEnd(),
  requestBody: {
    description: `An observation or a question, at most ${LIMITS.robotBodyBytesMax / 2 ** 20} MiB, nested at most ${LIMITS.jsonDepthMax} deep, at most ${LIMITS.jsonValuesMax} values. \`null\` in an optional field equals its absence; unknown extra properties are accepted. The schemas say what every model accepts; the number of images and rows, the shape of the state and the length of the instruction depend on the model as well.`,
    required: true,
    content: {
      "application/json": {
        schema: {
          anyOf: [{ $ref: "#/components/schemas/Observation" }, { $ref: "#/components/schemas/Question" }],
        },
        examples: {
          observation: { $ref: "#/components/examples/observation" },
          question: { summary: "Asks the model what it needs", value: QUESTION_EXAMPLE },
        },
      },
    },
  },
  responses: {
    "200": {
      description: `A chunk, or a description.\n\n${withLimits(stream).trimEnd()}`,
      headers: headers("X-Generation-Id", "X-Session-Step", "Server-Timing", "Idempotent-Replayed", "X-Tendon-Bundle"),
      content: {
        ...json("ChatCompletion"),
        "text/event-stream": { schema: { $ref: "#/components/schemas/ChatCompletionChunk" }, example: EVENTS },
      },
    },
  },
};

export const endSessionOperation: Operation = {
  operationId: "endSession",
  summary: "End a session at once",
  description:
    "Frees what the session holds, instead of after its idle time. A request of it that is running is still answered. " +
    "The id then answers 410 to later requests. 204 always, also for a session that is unknown or has ended: afterwards there is none.",
  parameters: [
    {
      name: "session_id",
      in: "path",
      required: true,
      description: "The session's id, percent-encoded.",
      schema: Type.String({ minLength: 1 }),
    },
    {
      name: "model",
      in: "query",
      required: true,
      description: "The model id that the session runs on: sessions are keyed by account, model and id.",
      schema: Type.String({ minLength: 1 }),
    },
  ],
  responses: {
    "204": { description: "There is no such session any more.", headers: headers() },
  },
};

export const robotModelsOperation: Operation = {
  operationId: "listRobotModels",
  summary: "The robot models, with their facts",
  description: "`POST /v1/chat/completions` with a text alone describes one of them in words.",
  responses: {
    "200": { description: "Every served robot model.", headers: headers(), content: json("RobotModels") },
  },
};

const text = (description: string) => Type.String({ description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
/** A string out of a list; one by one, because the plugin would drop the description of a union. */
const oneOf = (values: readonly string[], description: string) => Type.String({ enum: [...values], description });

const STATION_TEXTS: Readonly<Record<(typeof STATIONS)[number], string>> = {
  decode:
    "From the observation to its frames as normalised tensors: reading the body, base64, JPEG. 0 on a socket whose frames were there before.",
  queue:
    "Every other wait before the model starts: for the observation before it, for permits, for the money's hold, for a replica, for its session's memory to return to the device.",
  prefill: "Images, text and state to the model's prefix cache.",
  denoise: "All flow steps.",
  encode: "Denormalising, and making the answer.",
};

const ACTION_SPACES = ["joint_position", "cartesian_position", "vector"];

const ROW = {
  dt: Type.Number({ exclusiveMinimum: 0, description: "Seconds between two rows." }),
  action_dim: Type.Integer({ minimum: 1, description: "Values per row." }),
};

const ActionChunk = Type.Object(
  {
    session_id: text("The request's, or an `anon-` id where it had none."),
    step: count("Zero-based index of the chunk in its session."),
    ...ROW,
    action_space: oneOf(
      ACTION_SPACES,
      "`joint_position`: left joints 1 to 6, left gripper, right joints 1 to 6, right gripper. `cartesian_position`: left " +
        "xyz, rotation6d, gripper, then right the same. `vector`: the `action_columns` of the model in `GET /v1/robot/models`.",
    ),
    actions: Type.Array(Type.Array(Type.Number()), {
      minItems: 1,
      maxItems: LIMITS.chunkRowsMax,
      description:
        "Rows of `action_dim` values in the robot's units, absolute: radians, metres, grippers as in `robot_state`; of a `vector` those " +
        "that its columns name. Finite " +
        "float32 values, each in the shortest form that reads back to the same float32, within the range that the bundle " +
        "has for its column: what is outside is clamped, or fails the run, as the bundle says. Where the bundle limits how far " +
        "row 0 may be from the state, or a row from the one before it, a chunk that passes the limit is `model_failure`.",
    }),
    next_frames_per_camera: Type.Integer({
      minimum: 1,
      description: "Frames per camera that the session's next request must carry.",
    }),
    timing_ms: Type.Object(
      Object.fromEntries(
        STATIONS.map((station) => [station, Type.Number({ minimum: 0, description: STATION_TEXTS[station] })]),
      ),
      {
        description:
          "Milliseconds at each station, with microsecond resolution, from the last byte of the observation. Their sum, the wait for " +
          "durability (`commit` in `Server-Timing`) and the transport explain the client's time.",
      },
    ),
    cache_reset: Type.Optional(
      Type.Literal(true, {
        description: "There when the episode's memory window was full and started anew in this run.",
      }),
    ),
    clamped: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          "There when values were outside their column's range and were clamped: how many, over all rows that the model computed.",
      }),
    ),
  },
  { title: "Action chunk", description: "The next second of motion: the JSON text in the reply's `content`." },
);

const Usage = Type.Object(
  {
    prompt_tokens: count("Image, text and state tokens, those kept in the episode's memory included."),
    prompt_tokens_details: Type.Object({
      cached_tokens: count("Those kept from earlier chunks of the episode: 0 at step 0 and for models without memory."),
    }),
    completion_tokens: count("Rows that the model computed, before any cut by `action_horizon`."),
    total_tokens: count("The sum of both."),
  },
  { title: "Usage", description: "All zeros for a question." },
);

const content = (description: string) =>
  Type.String({
    description,
    contentMediaType: "application/json",
    contentSchema: { $ref: "#/components/schemas/ActionChunk" },
  });

const CONTENT =
  "For an observation the action chunk as JSON text, to be parsed once more; for a question the model's description as plain text.";

const head = (object: string) => ({
  id: Type.String({ pattern: "^gen_[0-9A-Za-z]{24,}$", description: "Id of this generation; ids sort by time." }),
  object: Type.Literal(object),
  created: count("Unix seconds."),
  model: text("The model id, as in the request."),
});

const ChatCompletion = Type.Object(
  {
    ...head("chat.completion"),
    choices: Type.Array(
      Type.Object({
        index: Type.Literal(0),
        message: Type.Object({ role: Type.Literal("assistant"), content: content(CONTENT) }),
        finish_reason: oneOf(["stop", "error"], "`stop`."),
      }),
      { minItems: 1, maxItems: 1 },
    ),
    usage: Usage,
  },
  { title: "Chat completion" },
);

const ChatCompletionChunk = Type.Object(
  {
    ...head("chat.completion.chunk"),
    choices: Type.Array(
      Type.Object({
        index: Type.Literal(0),
        delta: Type.Object(
          { role: Type.Optional(Type.Literal("assistant")), content: Type.Optional(content(CONTENT)) },
          { description: "Whole in the first event, empty in the next." },
        ),
        finish_reason: Type.Unsafe<string | null>({
          type: ["string", "null"],
          enum: [null, "stop", "error"],
          description:
            "`null` beside the content, then `stop`; `error` when the run failed after the stream had started.",
        }),
      }),
      { minItems: 1, maxItems: 1 },
    ),
    usage: Type.Optional(Usage),
    error: Type.Optional(errorSchema),
  },
  { title: "Event of a streamed answer" },
);

const COLUMN = { name: text("Its name in the bundle."), unit: text("`1` for a number without one.") };
const limit = (what: string) =>
  Type.Optional(Type.Number({ exclusiveMinimum: 0, description: `${what}; absent without such a limit.` }));

const RobotModel = Type.Object(
  {
    id: Type.String({ description: "What a request names as `model`." }),
    object: Type.Literal("robot.model"),
    title: Type.String({ description: "For people." }),
    cameras: Type.Array(Type.String(), { description: "Names, in the order in which their frames are sent." }),
    frames: Type.Object(
      { first: Type.Integer({ minimum: 1 }), later: Type.Integer({ minimum: 1 }) },
      { description: "Frames per camera: of a session's first request, and of later ones." },
    ),
    frame_size: Type.Union(
      [Type.Object({ width: Type.Integer({ minimum: 1 }), height: Type.Integer({ minimum: 1 }) }), Type.Null()],
      { description: "Pixels that every frame must have exactly, where the model resizes none; `null`: any." },
    ),
    state: Type.String({ enum: ["joint", "cartesian", "vector"], description: "The shape of `robot_state`." }),
    state_columns: Type.Array(
      Type.Object({ ...COLUMN, from: text("The array of `robot_state`."), index: count("Which of its values.") }),
      { description: "The values that the model reads. Those of a `vector` are the array `state` in its order." },
    ),
    rows: Type.Integer({ minimum: 1, description: "Rows of a whole chunk." }),
    ...ROW,
    action_space: Type.String({ enum: ACTION_SPACES }),
    action_columns: Type.Array(
      Type.Object({
        ...COLUMN,
        min: Type.Number({ description: "No value that is sent is below it." }),
        max: Type.Number({ description: "No value that is sent is above it." }),
        max_jump: limit("The most that row 0 differs from the state"),
        max_step: limit("The most from one row to the next"),
      }),
      { description: "The values of a row, in their order." },
    ),
    stateful: Type.Boolean({ description: "Keeps memory over an episode: needs a `session_id`." }),
    bundle: Type.String({
      enum: ["trained", "reference"],
      description:
        "`reference`: random weights, or no model at all (device `echo`). Its rows must never move a real arm.",
    }),
    ready: Type.Boolean({ description: "`false` while it is still being loaded." }),
  },
  { title: "Robot model" },
);

const RobotModels = Type.Object(
  { object: Type.Literal("list"), data: Type.Array(RobotModel) },
  { title: "Robot models" },
);

export const ROBOT_SCHEMAS: Readonly<Record<string, TSchema>> = {
  Observation: observationSchema,
  Question: questionSchema,
  ChatCompletion,
  ActionChunk,
  ChatCompletionChunk,
  RobotModels,
};

export const ROBOT_HEADERS: Readonly<Record<string, Header>> = {
  "X-Generation-Id": {
    description: "The generation's id, equal to `id` in the body; a replay has that of the first answer.",
    schema: Type.String({ pattern: "^gen_[0-9A-Za-z]{24,}$" }),
  },
  "X-Session-Step": {
    description: "The chunk's zero-based index in its session; only where the request has a `session_id`.",
    schema: Type.Integer({ minimum: 0 }),
  },
  "Server-Timing": {
    description:
      "The stations of `timing_ms` for browsers and proxies, and `commit`, the wait until the answer was durable; not on replays, " +
      "and not on streams, whose headers leave before the run.",
    schema: Type.String({
      examples: [
        "decode;dur=2.44, queue;dur=0.04, prefill;dur=9.62, denoise;dur=11.06, encode;dur=0.22, commit;dur=1.31",
      ],
    }),
  },
  "Idempotent-Replayed": {
    description: "There when an `observation_id` got its first answer again: nothing ran and nothing was charged.",
    schema: Type.Literal("true"),
  },
  "X-Tendon-Bundle": {
    description:
      "There when rows of this model must never move a real arm: a reference bundle (random weights), or the device `echo` (no model, zeros).",
    schema: Type.Literal("reference"),
  },
};
