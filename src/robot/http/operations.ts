/** The routes of the robot models in words: what they do, take and answer. */
import { Type } from "@sinclair/typebox";
import { headers, json, type Operation } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";

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
  "**Two robots, one name.** Each robot needs a `session_id` of its own. Requests that overlap are told, `session_busy`, and so are " +
    "two API keys that drive one session in turn, `session_step_conflict`. Two robots of one key that take turns cannot be told from " +
    "one robot with several connections: each would move by what the other sees. With `expected_step` in every request the second " +
    "one is told before anything runs. Send it always.",
  "**Exactly once.** With an `observation_id` a request can be repeated after any broken connection: it runs once, and its " +
    "answer is kept durably before it leaves. An answered request is charged once, an unanswered one at most once; if it was " +
    "charged, its repeat returns the stored answer at no charge.",
  "**Leaving and time.** A client that leaves before the model has started takes its request back. After that the chunk is " +
    "finished, committed, charged, and kept under its `observation_id`. A chunk that is not ready in time (the service's, or the " +
    "request's own `deadline_ms`) is stopped, not only given up: `engine_unavailable`, nothing charged.",
  "**Content type.** The body is read as JSON in UTF-8 whatever `Content-Type` says.",
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
