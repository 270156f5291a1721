/** The OpenAPI document: the operations of all surfaces with their failures, and what the operations refer to. */
import { unwrapSchema } from "@elysiajs/openapi/openapi";
import { type TSchema, Type } from "@sinclair/typebox";
import { present } from "../../std/assert.ts";
import { EVERY, KEY_ROWS, MONEY_ROWS } from "../../std/every-route.ts";
import type { Row } from "../../std/failure.ts";
import {
  errorContent,
  errorSchema,
  HEADERS,
  type Header,
  headers,
  json,
  type Operation,
  type Response,
} from "../operation.ts";
import type { Route } from "../route.ts";
import type { Surface } from "../surface.ts";
import about from "./about.md" with { type: "text" };
import { withLimits } from "./limit-text.ts";

/** The first version whose schemas are plain JSON Schema 2020-12. */
const OPENAPI_VERSION = "3.1.2";
/** The interface's version, which is not the program's. */
const INTERFACE_VERSION = "1.0.0";

/** An operation with what its route adds. */
export interface Documented extends Operation {
  readonly tags: readonly string[];
  readonly security: readonly object[];
}

export type Document = ReturnType<typeof openapiDocument>;

export function openapiDocument(surfaces: readonly Surface[]) {
  const documented = surfaces.filter(({ routes }) => routes.some(({ operation }) => operation));
  const document = {
    openapi: OPENAPI_VERSION,
    info: {
      title: "tendon",
      version: INTERFACE_VERSION,
      description: withLimits(about).trimEnd(),
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(documented.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: pathsOf(surfaces),
    components: componentsOf(surfaces),
  };
  // JSON drops TypeBox's own marks (they are symbols) and what is undefined.
  return JSON.parse(JSON.stringify(document)) as typeof document;
}

const Failure = Type.Object({ error: errorSchema }, { title: "Failure" });

function pathsOf(surfaces: readonly Surface[]) {
  const paths: Record<string, Record<string, Documented>> = {};
  for (const surface of surfaces) {
    for (const route of surface.routes) {
      if (!route.operation) continue;
      const path = route.path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}");
      paths[path] = {
        ...paths[path],
        [route.method.toLowerCase()]: {
          tags: [surface.tag],
          ...route.operation,
          security: route.keyed ? [{ key: [] }] : [],
          responses: { ...failureResponses(surface, route), ...route.operation.responses },
        },
      };
    }
  }
  return paths;
}

/** The failures that a route may answer with follow from its declaration. */
function rowsOf({ answers }: Surface, { keyed, readsBody, beginsWork, paid, failures = [] }: Route): Set<Row> {
  return new Set([
    EVERY.internal_error,
    ...(keyed ? KEY_ROWS : []),
    ...(readsBody ? [answers.tooLarge, answers.malformed] : []),
    ...(paid ? MONEY_ROWS : []),
    ...failures,
    ...(readsBody || beginsWork ? [answers.unavailable] : []),
  ]);
}

/** The failures by status: each code with its meaning. */
function failureResponses(surface: Surface, route: Route): Record<string, Response> {
  const rows = [...rowsOf(surface, route)].filter(({ http }) => http !== undefined);
  const byStatus = Map.groupBy(rows, ({ status, statuses }) => statuses ?? String(status));
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, failureResponse(surface, status, group)]));
}

function failureResponse({ failureForm }: Surface, status: string, rows: readonly Row[]): Response {
  const own = failureForm?.schema !== undefined && rows.every((row) => Object.values(failureForm.table).includes(row));
  return {
    description: rows.map((row) => `- \`${row.wire}\`: ${row.http}`).join("\n"),
    headers: headers(
      ...(status === "401" && !own ? ["WWW-Authenticate"] : []),
      ...(status === "429" || status === "503" ? ["Retry-After"] : []),
      ...(rows.some(({ final }) => final) ? ["X-Should-Retry"] : []),
    ),
    content: own ? json(failureForm.schema) : errorContent([...new Set(rows.map(({ wire }) => wire))]),
  };
}

function componentsOf(surfaces: readonly Surface[]) {
  const merged = <T>(part: (surface: Surface) => Readonly<Record<string, T>> | undefined): Record<string, T> =>
    Object.assign({}, ...surfaces.map(part));
  return {
    schemas: plain({ ...merged<TSchema>(({ schemas }) => schemas), Failure }),
    headers: { ...HEADERS, ...merged<Header>(({ headers }) => headers) },
    examples: merged(({ examples }) => examples),
    securitySchemes: {
      key: {
        type: "http",
        scheme: "bearer",
        description:
          "`Authorization: Bearer KEY`. The header is looked at before the body is read. `tendon token` prints the " +
          "key that is saved on a machine; keep it in the environment of the calling program.",
      },
    },
  };
}

/** Null as one of a field's types instead of a union, as people and generators of clients read it best. */
function plain(schemas: Readonly<Record<string, TSchema>>): Record<string, object> {
  const entries = Object.entries(schemas).map(([name, schema]): [string, object] => [
    name,
    present(unwrapSchema(schema, undefined, "input", OPENAPI_VERSION), `the schema ${name}`),
  ]);
  return Object.fromEntries(entries);
}
