/** The language models: `POST /v1/responses`, `GET /v1/responses/{response_id}`, `GET /v1/models`. */
import { json, NO_BODY } from "../../http/body-rules.ts";
import type { Principal } from "../../http/deps.ts";
import type { JsonObject } from "../../http/json.ts";
import { type Call, KEY, type Outcome, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { canonicalSteps } from "../../std/canonical.ts";
import { Failure } from "../../std/failure.ts";
import { makeId } from "../../std/ids.ts";
import { inSlices } from "../../std/slices.ts";
import { readKey, readRequest } from "../checks.ts";
import type { LlmDeps } from "../deps.ts";
import { LLM, LLM_ANSWERS } from "../errors.ts";
import { isBackground, LLM_IDS } from "../models.ts";
import { respond } from "../respond.ts";
import {
  createOperation,
  LLM_EXAMPLES,
  LLM_HEADERS,
  LLM_SCHEMAS,
  modelsOperation,
  retrieveOperation,
} from "./openapi.ts";
import { retrieve } from "./retrieve.ts";
import { streamed } from "./streamed.ts";

export function llm({ llm: deps }: { readonly llm: LlmDeps }): Surface {
  const models = modelList();
  const { body_too_large, response_not_found, invalid_id, upstream_unavailable, ...others } = LLM;
  const created = [others.invalid_request, body_too_large, ...Object.values(others).slice(1), upstream_unavailable];
  return {
    tag: "Language models",
    answers: LLM_ANSWERS,
    routes: [
      route({
        method: "POST",
        path: "/v1/responses",
        name: "responses",
        key: KEY,
        body: json(LIMITS.llmBodyBytesMax, { smaller: "send a shorter conversation, or smaller images" }),
        beginsWork: true,
        paid: true,
        failures: created,
        operation: createOperation,
        handle: (call) => create(deps, call),
      }),
      route({
        method: "GET",
        path: "/v1/responses/:response_id",
        name: "response",
        key: KEY,
        body: NO_BODY,
        free: true,
        failures: [others.invalid_request, invalid_id, response_not_found, upstream_unavailable],
        operation: retrieveOperation,
        handle: (call) => retrieve(deps, call),
      }),
      route({
        method: "GET",
        path: "/v1/models",
        name: "models",
        key: KEY,
        body: NO_BODY,
        operation: modelsOperation,
        handle: async () => ({ status: 200, body: models }),
      }),
    ],
    schemas: LLM_SCHEMAS,
    headers: LLM_HEADERS,
    examples: LLM_EXAMPLES,
    page: {
      name: "language-models",
      operationId: "docsLanguageModels",
      title: "Language models",
      description: "What `POST /v1/responses` promises, clients, and how an operator puts a provider behind an id.",
      make: async () => (await import("../docs/language-models.ts")).languageModelsPage(),
    },
  };
}

/** `POST /v1/responses`: fields to a command; then the response, as JSON or as events. */
async function create(deps: LlmDeps, call: Call<Principal, JsonObject>): Promise<Outcome> {
  const { request: http, requestId, principal, body, server, timed } = call;
  const request = readRequest(body, deps.providers);
  const key = readKey(http.headers.get("idempotency-key")) ?? makeId("key_", deps.clock);
  if (key instanceof Failure) return request instanceof Failure ? request : key;
  if (request instanceof Failure) return { failure: request, headers: { "idempotency-key": key } };
  const { accountId } = principal;
  const digest = await inSlices(canonicalSteps("response", body), timed);
  // A model may think for long before its first word; the limits of time are the provider's.
  server?.timeout(http, 0);
  const responded = await respond(deps, { request, digest, accountId, requestId, key });
  // The limit holds for the connection, also after this answer; a stream has its own, below.
  server?.timeout(http, LIMITS.connectionIdleSeconds);
  if (responded instanceof Failure) return { failure: responded, headers: { "idempotency-key": key } };
  const { replayed } = responded;
  const headers = { "idempotency-key": key, ...(replayed ? { "idempotent-replayed": "true" } : {}) };
  const free = replayed && ({ unpaid: true } as const);
  if ("object" in responded) return { status: 200, body: responded.object, headers, ...free };
  const buffered = isBackground(request.model)
    ? { "x-service-streaming": "buffered", location: `/v1/responses/${responded.id}` }
    : {};
  return { ...streamed(call, responded, { ...headers, ...buffered }), ...free };
}

/** Unix seconds: when version 1.0.0 of the interface was fixed. */
const CREATED = 1_793_491_200;

function modelList(): string {
  const data = LLM_IDS.map((id) => ({ id, object: "model", created: CREATED, owned_by: "tendon" }));
  return JSON.stringify({ object: "list", data });
}
