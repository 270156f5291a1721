/** `GET /openapi.json`, `GET /docs` and the pages below it: the interface for programs and for people. None needs a key. */
import { Type } from "@sinclair/typebox";
import { EVERY } from "../../std/every-route.ts";
import { NO_BODY } from "../body-rules.ts";
import { headers, type Operation } from "../operation.ts";
import { NO_KEY, type Reply, type Route, route } from "../route.ts";
import type { DocumentPage, Surface } from "../surface.ts";
import { PAGE_POLICY } from "./shell.ts";

/** The documentation of the given surfaces, and of itself. */
export function docs(others: readonly Surface[]): Surface {
  // Made when first asked for, as are the modules that make it, so that no start waits for them.
  const document = once(async () => (await import("./document.ts")).openapiDocument([...others, surface]));
  const get = (
    path: string,
    name: string,
    operation: Operation,
    make: () => Promise<string>,
    type = JSON_TYPE,
  ): Route => {
    const made = once(make);
    const handle = async (): Promise<Reply> => ({ status: 200, body: await made(), headers: type });
    return route({ method: "GET", path, name, key: NO_KEY, body: NO_BODY, operation, handle });
  };
  const surface: Surface = {
    tag: "Service",
    // Its routes read no body and begin no work, so none of these is answered.
    answers: { tooLarge: EVERY.internal_error, malformed: EVERY.internal_error, unavailable: EVERY.internal_error },
    routes: [
      get("/openapi.json", "openapi", OPENAPI, async () => JSON.stringify(await document())),
      get("/docs", "docs", DOCS, async () => (await import("./page.ts")).page(await document(), others), PAGE_TYPE),
      ...others.flatMap(({ page }) =>
        page ? [get(`/docs/${page.name}`, "docs", pageOperation(page), page.make, PAGE_TYPE)] : [],
      ),
    ],
  };
  return surface;
}

const JSON_TYPE: Readonly<Record<string, string>> = { "content-type": "application/json" };

const PAGE_TYPE: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": PAGE_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

const OPENAPI: Operation = {
  operationId: "openapi",
  summary: "This document",
  responses: {
    "200": {
      description: "An OpenAPI document.",
      headers: headers(),
      content: { "application/json": { schema: Type.Object({ openapi: Type.String() }) } },
    },
  },
};

const DOCS: Operation = {
  operationId: "docs",
  summary: "This document as a page for people",
  description: "One page without scripts or anything from elsewhere.",
  responses: {
    "200": { description: "HTML.", headers: headers(), content: { "text/html": { schema: Type.String() } } },
  },
};

function pageOperation({ operationId, title, description }: DocumentPage): Operation {
  return { operationId, summary: `${title}, as a page for people`, description, responses: DOCS.responses };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
