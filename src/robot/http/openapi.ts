/**
 * The routes of the robot models in words and JSON Schema. Replies are printed by hand for speed; a test checks them against
 * these schemas.
 */
import { type TSchema, Type } from "@sinclair/typebox";
import { STATIONS } from "../../engine/engine.ts";
import { errorSchema, type Header, headers, json, type Operation } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { observationSchema, questionSchema } from "./checks.ts";

const STREAM = [
  "With `stream: true` (`text/event-stream`):",
  [
    `- The comment \`: processing\` comes at once and then every ${LIMITS.processingMs} ms. Each event is written whole.`,
    "- One event has the whole `content`, `finish_reason` null.",
    "- One has an empty `delta`, `finish_reason` `stop` and `usage`.",
    "- `data: [DONE]` ends the stream.",
    `- A client that leaves over ${LIMITS.sseUnsentBytesMax / 2 ** 20} MiB unread is cut off, which counts as leaving.`,
    "- A failure after the start is an event with an empty `delta`, `finish_reason` `error` and `error`, then `[DONE]`; the " +
      "status stays 200. Every check up to capacity runs before that and answers as plain JSON.",
  ].join("\n"),
  "The schema is that of the JSON in each `data:` line. A question and a replay stream in the same form.",
].join("\n\n");

const EVENTS = [
  ": processing",
  'data: {"id":"gen_0VbZqBjQzeWG8jBxSHWxuTs6","object":"chat.completion.chunk","created":1795233827,"model":"vendorB/molmoact2:yam","choices":[{"index":0,"delta":{"role":"assistant","content":"{\\"session_id\\":\\"s1\\",\\"step\\":0,…}"},"finish_reason":null}]}',
  'data: {"id":"gen_0VbZqBjQzeWG8jBxSHWxuTs6","object":"chat.completion.chunk","created":1795233827,"model":"vendorB/molmoact2:yam","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":209,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens":30,"total_tokens":239}}',
  "data: [DONE]",
  "",
].join("\n\n");

const CHAT = [
  "Turns one observation (instruction, camera frames, the robot's state) into one action chunk: the next rows of motion. " +
    "Without image parts it describes the model in words.",
  "**Order of checks.** Key, size, JSON, fields, idempotent replay, session, images, payment, capacity, run; within the fields " +
    "and the session in the order in which the codes stand below. The first that fails answers.",
  `**Sessions.** An episode is a \`session_id\` of the client's choice. Its first request sends the model's first number of frames per camera and gets \`step\` 0; each later one sends as many as \`next_frames_per_camera\` says and gets the next step. One request at a time, always the same instruction. These rules hold for every model, with memory or not. After ${LIMITS.sessionIdleMs / 1000} s without a request, after its end or a restart the id answers 410 for ${LIMITS.sessionEndedMs / 3_600_000} hours. A failed request leaves step and memory as they were.`,
  "**Two robots, one name.** Each robot needs its own `session_id`. Requests that overlap get `session_busy`, and two API keys that " +
    "drive one session in turn get `session_step_conflict`. Two robots of one key that take turns look like one robot with several " +
    "connections: each would move by what the other sees. With `expected_step` in every request the second one is refused before " +
    "anything runs. Send it always.",
  "**Exactly once.** With an `observation_id` a request can be repeated after any broken connection: it runs once, and its " +
    "answer is kept durably before it leaves. An answered request is charged once, an unanswered one at most once; if it was " +
    "charged, its repeat returns the stored answer at no charge.",
  "**Leaving and time.** A client that leaves before the model has started takes its request back. After that the chunk is " +
    "finished, committed, charged, and kept under its `observation_id`. A chunk that is not ready in time (the service's, or the " +
    "request's own `deadline_ms`) is stopped, not only given up: `engine_unavailable`, nothing charged.",
  "**Content type.** The body is read as JSON in UTF-8, with any `Content-Type`.",
].join("\n\n");

const QUESTION_EXAMPLE = {
  model: "vendorB/molmoact2:yam",
  messages: [{ role: "user", content: "what do you need?" }],
};

export const chatOperation: Operation = {
  operationId: "createChatCompletion",
  summary: "One observation in, one action chunk out",
  description: CHAT,
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
      description: `A chunk, or a description.\n\n${STREAM}`,
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

const ActionChunk = Type.Object(
  {
    session_id: text("The request's, or an `anon-` id where it had none."),
    step: count("Zero-based index of the chunk in its session."),
    dt: Type.Number({ exclusiveMinimum: 0, description: "Seconds between two rows." }),
    action_dim: Type.Integer({ minimum: 1, description: "Values per row." }),
    action_space: oneOf(
      ["joint_position", "cartesian_position"],
      "`joint_position`: left joints 1 to 6, left gripper, right joints 1 to 6, right gripper. `cartesian_position`: left " +
        "xyz, rotation6d, gripper, then right the same.",
    ),
    actions: Type.Array(Type.Array(Type.Number()), {
      minItems: 1,
      maxItems: LIMITS.chunkRowsMax,
      description:
        "Rows of `action_dim` values in the robot's units, absolute: radians, metres, grippers as in `robot_state`. Finite " +
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
    state: Type.String({ enum: ["joint", "cartesian"], description: "The shape of `robot_state`." }),
    rows: Type.Integer({ minimum: 1, description: "Rows of a whole chunk." }),
    dt: Type.Number({ exclusiveMinimum: 0, description: "Seconds between two rows." }),
    action_dim: Type.Integer({ minimum: 1, description: "Values per row." }),
    action_space: Type.String({ enum: ["joint_position", "cartesian_position"] }),
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
