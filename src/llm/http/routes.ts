/** The language models: `POST /v1/responses`, `GET /v1/responses/{response_id}`, `GET /v1/models`. */

import { json, NO_BODY } from "../../http/body-rules.ts";
import { KEY, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import type { LlmDeps } from "../deps.ts";
import { LLM, LLM_ANSWERS } from "../errors.ts";
import { create } from "./create.ts";
import { modelList } from "./models.ts";
import { createOperation, LLM_EXAMPLES, modelsOperation, retrieveOperation } from "./operations.ts";
import { retrieve } from "./retrieve.ts";
import { LLM_HEADERS, LLM_SCHEMAS } from "./schemas.ts";

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
        body: json(LIMITS.llmBodyBytesMax, "send a shorter conversation, or images by their addresses"),
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
        failures: [invalid_id, response_not_found, upstream_unavailable],
        operation: retrieveOperation,
        handle: ({ principal: { accountId }, params: { response_id } }) =>
          retrieve(deps, { accountId, id: response_id ?? "" }),
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
