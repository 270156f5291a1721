/** The OpenAPI document: the routes that the app really has, each with its operation, and what the operations refer to. */
import { toOpenAPISchema, unwrapSchema } from "@elysiajs/openapi/openapi";
import type { AnyElysia } from "elysia";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { EXAMPLE } from "./example.ts";
import { HEADERS } from "./headers.ts";
import { OPERATIONS } from "./operations.ts";
import type { Operation } from "./parts.ts";
import { SCHEMAS } from "./schemas.ts";

/** JSON Schema 2020-12 as it is, so that the schemas mean here what they mean everywhere. */
const OPENAPI_VERSION = "3.1.2";
/** Of the interface, not of the program. */
const INTERFACE_VERSION = "1.0.0";

const ABOUT = [
  "Serves robot action models: an observation (instruction, camera frames, the robot's state) in, the next rows of motion out.",
  "**Errors.** Every error has the form `{error: {message, type, param?, code}}`: branch on `code`. A route that does not exist, " +
    `or not with this method, is 404 \`not_found\`, with a key or without. Every accepted request ends in exactly one reply; a ` +
    "timeout stops the work, not only the reply.",
  "**Retrying.** 5xx and 429: after `Retry-After` seconds where it is given, else with growing pauses and some jitter. All " +
    "other errors come again until the request is changed, and so does an error with `x-should-retry: false`. With an " +
    "`observation_id` a repeat is safe.",
  "**Money.** Before a run its maximum cost is held, beside the decoding of its images; when it is answered, its real cost is " +
    "settled, once, in the same durable step as its answer, and what it did not need is free again. A run that fails costs nothing. " +
    "Rates are those of the moment of submission. `/account` shows keys, credit, spend limit and usage to people.",
  `**Transport.** HTTP/1.1. A connection without a byte for ${LIMITS.connectionIdleSeconds} s is closed. An over-long body is refused before ` +
    "it is read. While the service shuts down it answers `engine_unavailable` and closes connections after their answer.",
].join("\n\n");

export interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: object }>>;
    readonly examples: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>;
  };
}

/** To be called when all routes are there. */
export function openapiDocument(app: AnyElysia): Document {
  // As JSON and back: TypeBox's own marks, which are symbols, and what is undefined are gone.
  return JSON.parse(
    JSON.stringify({
      openapi: OPENAPI_VERSION,
      info: {
        title: "tendon",
        version: INTERFACE_VERSION,
        description: ABOUT,
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/" }],
      tags: [{ name: "Robot models" }, { name: "Language models" }, { name: "Sign-in" }, { name: "Service" }],
      paths: documented(app),
      components: {
        schemas: plain(SCHEMAS),
        headers: HEADERS,
        examples: { observation: { summary: "What `tendon sample` writes, with smaller frames", value: EXAMPLE } },
        securitySchemes: {
          key: {
            type: "http",
            scheme: "bearer",
            description:
              "`Authorization: Bearer KEY`. The header is looked at before the body is read. `tendon token` prints the " +
              "key that is saved on a machine; keep it in the environment of the calling program.",
          },
        },
      },
    }),
  ) as Document;
}

/** The app's routes as the plugin finds them, in the order of the table; what the app has not is not in the document. */
function documented(app: AnyElysia): Record<string, Record<string, Operation>> {
  const found = toOpenAPISchema(app, { staticFile: false }, undefined, undefined, OPENAPI_VERSION).paths;
  const routes = Object.entries(found).flatMap(([path, methods]) =>
    Object.keys(methods ?? {}).map((method) => ({ path, method, name: `${method.toUpperCase()} ${path}` })),
  );
  const order = Object.keys(OPERATIONS);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const { path, method, name } of routes.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name))) {
    paths[path] = { ...paths[path], [method]: present(OPERATIONS[name], `the documentation of ${name}`) };
  }
  return paths;
}

/** Null as one of a field's types instead of a union, as people and generators of clients read it best. */
function plain(schemas: typeof SCHEMAS): Record<string, object> {
  const entries = Object.entries(schemas).map(([name, schema]): [string, object] => [
    name,
    present(unwrapSchema(schema, undefined, "input", OPENAPI_VERSION), `the schema ${name}`),
  ]);
  return Object.fromEntries(entries);
}
