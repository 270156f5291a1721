/** What the language models' routes say in the document of the API: what they do, take and answer. */
import { type TSchema, Type } from "@sinclair/typebox";
import { type Header, headers, json, type Operation } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { KEY_PATTERN } from "../checks.ts";
import { LLM_IDS } from "../models.ts";
import { BODY } from "../request.ts";

export const RESPONSE_ID = /^resp_[0-9A-Za-z]{24,64}$/;

const CREATE = [
  "Asks a language model. `:superfast` models answer inline, `:async` models in the background: their answer is a response that " +
    "is `queued` or `in_progress`, to be polled with `GET /v1/responses/{response_id}` until its `status` is `completed`, " +
    "`failed`, `cancelled` or `incomplete`.",
  "With an `Idempotency-Key` a request can be repeated after any broken connection: the provider is called once, and the repeat " +
    `gets the same response (\`Idempotent-Replayed: true\`); while the first one goes on it waits, up to ${LIMITS.llmKeyWaitMs / 1000} s.`,
  "What is not listed here, and what the model's provider cannot honour, is refused with 422 and `param`.",
  "With `stream: true` the answer is events (`text/event-stream`): live ones of a `:superfast` model, and of an `:async` model the " +
    "whole output at its end. The page about language models lists them, and says what is held and charged.",
].join("\n\n");

export const LLM_EXAMPLES = {
  greeting: { summary: "A question", value: { model: "llm-a-5.3:superfast", input: "Say hello." } },
} as const;

export const createOperation: Operation = {
  operationId: "createResponse",
  summary: "Ask a language model, live or in the background",
  description: CREATE,
  requestBody: {
    description: `At most ${LIMITS.llmBodyBytesMax / 2 ** 20} MiB. \`null\` in an optional field equals its absence.`,
    required: true,
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/ResponseRequest" },
        examples: { greeting: { $ref: "#/components/examples/greeting" } },
      },
    },
  },
  responses: {
    "200": {
      description: "The response, or its events.",
      headers: headers("Idempotency-Key", "Idempotent-Replayed", "X-Service-Streaming", "Location"),
      content: { ...json("Response"), "text/event-stream": { schema: { type: "string" } } },
    },
  },
};

const parameter = (name: string, schema: TSchema, description: string) =>
  ({ name, in: "query", required: false, description, schema }) as const;

export const retrieveOperation: Operation = {
  operationId: "getResponse",
  summary: "A response as it is now",
  description:
    "Of either kind of model, live ones without `store: false` as well, for as long as responses are kept (30 days unless the operator sets another time).",
  parameters: [
    {
      name: "response_id",
      in: "path",
      required: true,
      description: "The `id` of a response that this account has created.",
      schema: Type.String({ pattern: RESPONSE_ID.source }),
    },
    parameter("stream", Type.Boolean(), "`true`: its events, each text in one piece."),
    parameter(
      "starting_after",
      Type.Integer({ minimum: 0 }),
      "With `stream`, of a background response: the events behind this number.",
    ),
  ],
  responses: {
    "200": {
      description: "The response, or its events.",
      headers: headers(),
      content: { ...json("Response"), "text/event-stream": { schema: { type: "string" } } },
    },
  },
};

export const modelsOperation: Operation = {
  operationId: "listModels",
  summary: "The ids of the language models",
  description:
    "Every id of the interface, whether its provider is configured or not. Robot models stand in `GET /readyz`.",
  responses: { "200": { description: "The ids.", headers: headers(), content: json("ModelList") } },
};

const words = (...values: readonly string[]): TSchema => Type.String({ enum: [...values] });

const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()]);

const Usage = Type.Object({
  input_tokens: Type.Integer({ minimum: 0, description: "Cached ones included." }),
  input_tokens_details: Type.Object({ cached_tokens: Type.Integer({ minimum: 0 }) }),
  output_tokens: Type.Integer({ minimum: 0, description: "Those of reasoning included." }),
  output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer({ minimum: 0 }) }),
  total_tokens: Type.Integer({ minimum: 0 }),
});

const Response = Type.Object(
  {
    id: Type.String({ pattern: RESPONSE_ID.source }),
    object: Type.Literal("response"),
    created_at: Type.Integer({ description: "Unix seconds." }),
    completed_at: nullable(Type.Integer({ description: "Unix seconds." })),
    status: words("queued", "in_progress", "completed", "failed", "cancelled", "incomplete"),
    model: Type.String({ enum: [...LLM_IDS] }),
    output: Type.Array(Type.Object({ type: words("message", "reasoning", "function_call"), id: Type.String() }), {
      description: "Items of the public Responses API.",
    }),
    output_text: Type.String({ description: "The text of all messages." }),
    error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
    incomplete_details: nullable(Type.Object({ reason: words("max_output_tokens", "content_filter") })),
    usage: nullable(Usage),
  },
  {
    title: "Response",
    description: "The complete object of the public Responses API: every other key is there as well.",
  },
);

const ModelList = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(
    Type.Object({
      id: Type.String({ enum: [...LLM_IDS], description: "A language model's id, exactly as requests name it." }),
      object: Type.Literal("model"),
      created: Type.Integer({ minimum: 0, description: "Unix seconds." }),
      owned_by: Type.String({ description: "Who serves it." }),
    }),
  ),
});

export const LLM_SCHEMAS = { ResponseRequest: BODY.schema, Response, ModelList };

export const LLM_HEADERS: Readonly<Record<string, Header>> = {
  "Idempotency-Key": {
    description: "The request's key, or the one that the service made: a repeat with it gets the same response.",
    schema: Type.String({ pattern: KEY_PATTERN.source }),
  },
  "X-Service-Streaming": { description: "On a stream of an `:async` model.", schema: Type.Literal("buffered") },
  Location: { description: "On a stream of an `:async` model: the response's path.", schema: Type.String() },
};
