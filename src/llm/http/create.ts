/** `POST /v1/responses`: fields to a command; then the response, as JSON or as events. */

import type { Principal } from "../../http/deps.ts";
import type { JsonObject } from "../../http/json.ts";
import { failedWith } from "../../http/reply.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { SSE_HEADERS } from "../../http/sse.ts";
import { LIMITS } from "../../limits.ts";
import { canonicalSteps } from "../../std/canonical.ts";
import { Failure } from "../../std/failure.ts";
import { makeId } from "../../std/ids.ts";
import { inSlices } from "../../std/slices.ts";
import type { LlmDeps } from "../deps.ts";
import { isBackground, type LlmId } from "../models.ts";
import { respond } from "../respond.ts";
import { readKey, readRequest } from "./checks.ts";

export async function create(deps: LlmDeps, call: Call<Principal, JsonObject>): Promise<Outcome> {
  const { request: http, requestId, principal, body, server } = call;
  const request = readRequest(body, deps.providers);
  const key = readKey(http.headers.get("idempotency-key")) ?? makeId("key_", deps.clock);
  if (key instanceof Failure) return request instanceof Failure ? request : key;
  if (request instanceof Failure) return failedWith(request, { "idempotency-key": key });
  const { accountId } = principal;
  const digest = await inSlices(canonicalSteps("response", body));
  // A model may think for long before its first word; the limits of time are the provider's.
  server?.timeout(http, 0);
  const responded = await respond(deps, { request, digest, accountId, requestId, key });
  // The limit holds for the connection, also after this answer; a stream has its own, below.
  server?.timeout(http, LIMITS.connectionIdleSeconds);
  if (responded instanceof Failure) return failedWith(responded, { "idempotency-key": key });
  const { replayed } = responded;
  const headers = { "idempotency-key": key, ...(replayed ? { "idempotent-replayed": "true" } : {}) };
  if ("object" in responded) return { status: 200, body: responded.object, headers };
  // From here on there is always something to send: whoever takes nothing for so long does not read.
  server?.timeout(http, LIMITS.llmUnreadSeconds);
  const { flow, id } = responded;
  return { status: 200, body: flow, headers: { ...SSE_HEADERS, ...headers, ...bufferedHeaders(request.model, id) } };
}

function bufferedHeaders(model: LlmId, id: string): Record<string, string> {
  return isBackground(model) ? { "x-service-streaming": "buffered", location: `/v1/responses/${id}` } : {};
}
