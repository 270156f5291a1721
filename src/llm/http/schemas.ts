/** The bodies of the language models' routes as documented JSON Schema. The checks decide (`checks.ts`). */
import { type TSchema, Type } from "@sinclair/typebox";
import { optional } from "../../http/check.ts";
import type { Header } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { LLM_IDS } from "../models.ts";
import { RESPONSE_ID } from "./retrieve.ts";

const words = (...values: readonly string[]): TSchema => Type.String({ enum: [...values] });

const TextPart = Type.Object({ type: words("input_text", "output_text"), text: Type.String() });
const ImagePart = Type.Object({
  type: Type.Literal("input_image"),
  image_url: Type.String({ description: "An http(s) address, or the image as `data:image/…;base64,`." }),
  detail: optional(words("auto", "low", "high")),
});

const Message = Type.Object(
  {
    type: Type.Optional(Type.Literal("message")),
    role: words("user", "system", "developer", "assistant"),
    content: Type.Union([Type.String(), Type.Array(Type.Union([TextPart, ImagePart]))]),
    phase: optional(words("commentary", "final_answer")),
  },
  { title: "Message" },
);

const CallItem = Type.Object(
  {
    type: Type.Literal("function_call"),
    call_id: Type.String({ minLength: 1, maxLength: 64 }),
    name: Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
    arguments: Type.String({ description: "JSON." }),
  },
  { title: "Function call" },
);

const CallOutput = Type.Object(
  {
    type: Type.Literal("function_call_output"),
    call_id: Type.String({ minLength: 1, maxLength: 64 }),
    output: Type.Union([Type.String(), Type.Array(TextPart)]),
  },
  { title: "Function call output" },
);

const ReasoningItem = Type.Object({ type: Type.Literal("reasoning") }, { title: "Reasoning" });

const Tool = Type.Object(
  {
    type: Type.Literal("function"),
    name: Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
    description: optional(Type.String()),
    parameters: optional(Type.Object({}, { description: "A JSON Schema." })),
    strict: optional(Type.Boolean()),
  },
  { title: "Function" },
);

const Format = Type.Union([
  Type.Object({ type: words("text", "json_object") }),
  Type.Object({
    type: Type.Literal("json_schema"),
    name: Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" }),
    description: optional(Type.String()),
    schema: Type.Object({}, { description: "A JSON Schema." }),
    strict: optional(Type.Boolean()),
  }),
]);

const ResponseRequest = Type.Object(
  {
    model: Type.String({ enum: [...LLM_IDS], description: "Exactly as written." }),
    input: optional(
      Type.Union([Type.String(), Type.Array(Type.Union([Message, CallItem, CallOutput, ReasoningItem]))], {
        description:
          "What is asked, or the conversation so far. Absent, it is the empty text; then `instructions` is needed.",
      }),
    ),
    instructions: optional(Type.String()),
    stream: optional(Type.Boolean({ default: false })),
    max_output_tokens: optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.outputTokensMax,
        description: "Default 8,192 for `llm-a-5.3:superfast`, 4,096 for the others.",
      }),
    ),
    temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
    tools: optional(Type.Array(Tool, { maxItems: 128 })),
    tool_choice: optional(
      Type.Union([
        words("auto", "none", "required"),
        Type.Object({ type: Type.Literal("function"), name: Type.String() }),
      ]),
    ),
    parallel_tool_calls: optional(Type.Boolean()),
    text: optional(Type.Object({ format: optional(Format), verbosity: optional(words("low", "medium", "high")) })),
    reasoning: optional(
      Type.Object({
        effort: optional(words("none", "minimal", "low", "medium", "high", "xhigh")),
        summary: optional(words("auto", "concise", "detailed")),
      }),
    ),
    metadata: optional(
      Type.Record(Type.String(), Type.String(), { description: "At most 16 pairs, returned with the response." }),
    ),
    truncation: optional(Type.Literal("disabled")),
    store: optional(Type.Boolean({ description: "`true` is refused by `:superfast`, `false` by `:async` models." })),
    background: optional(Type.Boolean({ description: "`true` is refused by `:superfast` models." })),
    user: optional(Type.String({ maxLength: 512 })),
    safety_identifier: optional(Type.String({ maxLength: 512 })),
    prompt_cache_key: optional(Type.String({ maxLength: 512 })),
    previous_response_id: Type.Optional(Type.Null({ description: "No model supports another value." })),
  },
  { title: "Request of a response", additionalProperties: false },
);

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

export const LLM_SCHEMAS = { ResponseRequest, Response, ModelList };

export const LLM_HEADERS: Readonly<Record<string, Header>> = {
  "Idempotency-Key": {
    description: "The request's key, or the one that the service made: a repeat with it gets the same response.",
    schema: Type.String({ pattern: `^[A-Za-z0-9_./:-]{1,${LIMITS.idempotencyKeyCharsMax}}$` }),
  },
  "X-Service-Streaming": { description: "On a stream of an `:async` model.", schema: Type.Literal("buffered") },
  Location: { description: "On a stream of an `:async` model: the response's path.", schema: Type.String() },
};
