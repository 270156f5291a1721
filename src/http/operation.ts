/** What a route says about itself in the OpenAPI document. Its failures, its key and its tag are added from its declaration. */
import { type TSchema, Type } from "@sinclair/typebox";

interface Media {
  readonly schema: TSchema | object;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, object>>;
}

export interface Response {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly description: string;
    readonly required: boolean;
    readonly content: Record<string, Media>;
  };
  /** The answers that are not failures, and a failure that has more than the error object. */
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Header {
  readonly description: string;
  readonly schema: TSchema;
}

/** The error object of the specification. */
export const errorSchema = Type.Object(
  {
    message: Type.String({
      description: "For people, and free to change: what was wrong, what was expected, what to do next.",
    }),
    // An enumerated string, because the document's plugin would drop the description of a union.
    type: Type.String({
      enum: ["authentication_error", "billing_error", "rate_limit_error", "api_error", "invalid_request_error"],
      description: "Coarse: 401, 402, 429, 5xx, all else.",
    }),
    param: Type.Optional(
      Type.String({
        description:
          "The request field at fault, only where one is: `messages[0].content[2].image_url.url` for example.",
      }),
    ),
    code: Type.String({ description: "The value to branch on." }),
  },
  { title: "Error object" },
);

/** The headers that the transport itself sends, by their names on the wire. */
export const HEADERS: Readonly<Record<string, Header>> = {
  "X-Request-Id": {
    description: "Id of this request, on every response; name it when you report something.",
    schema: Type.String({ pattern: "^req_[0-9A-Za-z]{24,}$" }),
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
};

/** The headers of a response, by reference to the document's components. */
export function headers(...names: readonly string[]): Record<string, { $ref: string }> {
  const all = ["X-Request-Id", ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** JSON as a schema of the document describes it. */
export function json(name: string): Record<string, Media> {
  return { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } };
}

/** The error object of the specification; `codes` are those that the `code` may have here. */
export function errorContent(codes: readonly string[]): Record<string, Media> {
  // `Failure` says the rest of the shape, and every operation has many of these.
  const code = { properties: { error: { properties: { code: { enum: [...codes] } } } } };
  return { "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/Failure" }, code] } } };
}
