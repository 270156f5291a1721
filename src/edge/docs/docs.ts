/** `GET /openapi.json`, `GET /docs`, `GET /docs/episodes`: the interface for programs and for people. None needs a key. */
import type { Elysia } from "elysia";
import { answer } from "../http/answer.ts";
import type { Service } from "../service.ts";
import { openapiDocument } from "./document.ts";
import { episodesPage } from "./episodes.ts";
import { page } from "./page.ts";
import { PAGE_POLICY } from "./shell.ts";

/** Adds the routes to an app; they tell of every route that it has when they are first asked. */
export function docs(service: Service) {
  return (app: Elysia) => {
    const json = once(() => JSON.stringify(openapiDocument(app)));
    const html = once(() => page(openapiDocument(app)));
    const episodes = once(episodesPage);
    const served = (html: () => string) => answer(service, "docs", async () => shown(html()));
    return app
      .get("/openapi.json", () => answer(service, "openapi", async () => ({ status: 200, body: json() })))
      .get("/docs", () => served(html))
      .get("/docs/episodes", () => served(episodes));
  };
}

function shown(body: string) {
  return {
    status: 200,
    body,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": PAGE_POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    },
  };
}

/** Made when first asked for, so that no start waits for it. */
function once(make: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
