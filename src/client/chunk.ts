/** The action chunk as a client reads it, from a chat completion or from a message of the socket. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseJson, textAt } from "../std/json.ts";

export const CHAT_ROUTE = "/v1/chat/completions";

/** Whether an answer comes from random weights, or from no model. */
export function isReference(headers: Headers): boolean {
  return headers.get("x-tendon-bundle") === "reference";
}

const ms = Type.Number();

/** The action chunk of the specification. */
const ActionChunk = Type.Object({
  session_id: Type.String(),
  step: Type.Number(),
  /** Seconds between rows. */
  dt: Type.Number(),
  action_dim: Type.Number(),
  action_space: Type.String(),
  /** Rows of `action_dim` values. */
  actions: Type.Array(Type.Array(Type.Number()), { minItems: 1 }),
  next_frames_per_camera: Type.Number(),
  timing_ms: Type.Object({ decode: ms, queue: ms, prefill: ms, denoise: ms, encode: ms }),
  /** The model forgot what it had seen before this chunk. */
  cache_reset: Type.Optional(Type.Boolean()),
  /** Values that were outside their column's range and were clamped. */
  clamped: Type.Optional(Type.Number()),
});
export type ActionChunk = Static<typeof ActionChunk>;

/** The chunk inside a chat completion; undefined when the body holds none, for example a model's description. */
export function chunkOf(completion: unknown): ActionChunk | undefined {
  const content = contentOf(completion);
  return content === undefined ? undefined : checked(parseJson(content));
}

/** What an `action_chunk` message has beyond the chunk; `rows` only where the rows come as bytes. */
const OF_THE_MESSAGE = ["type", "id", "observation_id", "usage", "replayed", "rows"];

/** The chunk of an `action_chunk` message. */
export function chunkOfMessage(message: object): ActionChunk | undefined {
  return checked(Object.fromEntries(Object.entries(message).filter(([key]) => !OF_THE_MESSAGE.includes(key))));
}

function checked(chunk: unknown): ActionChunk | undefined {
  if (!Value.Check(ActionChunk, chunk)) return undefined;
  return chunk.actions.every((row) => row.length === chunk.action_dim) ? chunk : undefined;
}

/** The assistant's text of a chat completion. */
export function contentOf(completion: unknown): string | undefined {
  return textAt(completion, "choices", 0, "message", "content");
}
