/** Response headers, and on which answers they are. */
import { type TSchema, Type } from "@sinclair/typebox";

interface Header {
  readonly description: string;
  readonly schema: TSchema;
}

/** By their names on the wire. */
export const HEADERS = {
  "X-Request-Id": {
    description: "Id of this request, on every response; name it when you report something.",
    schema: Type.String({ pattern: "^req_[0-9A-Za-z]{24,}$" }),
  },
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
      "The stations of `timing_ms` for browsers and proxies; not on streams, whose headers leave before the run.",
    schema: Type.String({
      examples: ["decode;dur=2.44, queue;dur=0.04, prefill;dur=9.62, denoise;dur=11.06, encode;dur=0.22"],
    }),
  },
  "Idempotent-Replayed": {
    description: "There when an `observation_id` got its first answer again: nothing ran and nothing was charged.",
    schema: Type.Literal("true"),
  },
  "X-Tendon-Bundle": {
    description: "There when the model is a reference bundle: random weights, whose rows must never move a real arm.",
    schema: Type.Literal("reference"),
  },
  "Retry-After": {
    description: "Whole seconds to wait before the next try.",
    schema: Type.Integer({ minimum: 1 }),
  },
  "X-Should-Retry": {
    description: "`false` where repeating the request unchanged cannot help; clients that retry by themselves obey it.",
    schema: Type.Literal("false"),
  },
  "WWW-Authenticate": { description: "On every 401.", schema: Type.Literal("Bearer") },
} as const satisfies Record<string, Header>;

export type HeaderName = keyof typeof HEADERS;

/** The headers of a response, by reference to the document's components. */
export function headers(...names: readonly HeaderName[]): Record<string, { $ref: string }> {
  const all = ["X-Request-Id", ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
