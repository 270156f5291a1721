/** Every answer leaves through here: request id, error objects, counting, and the last catch. */
import { Failure } from "../error.ts";
import { makeId } from "../std/ids.ts";
import type { Service } from "./service.ts";

/** A successful answer. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  /** Lower-case names; `content-type` is JSON unless named here. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Runs `work` and turns its outcome into the one response of this request. `route` is the name for metrics, from a
 * closed list.
 */
export async function answer(service: Service, route: string, work: () => Promise<Reply | Failure>): Promise<Response> {
  const requestId = makeId("req_", service.clock);
  service.lifecycle.enter();
  let outcome: Reply | Failure;
  try {
    outcome = await work();
  } catch (error) {
    outcome = fault(service, requestId, error);
  } finally {
    service.lifecycle.leave();
  }
  if (outcome instanceof Failure && outcome.detail !== undefined) {
    service.log.error("request failed", { request: requestId, code: outcome.code, detail: outcome.detail });
  }
  const reply = outcome instanceof Failure ? failureReply(outcome) : outcome;
  service.requests.add({ route, status: String(reply.status) });
  const headers = { "content-type": "application/json", ...reply.headers, "x-request-id": requestId };
  // A client that keeps its connection learns to look for another server.
  return new Response(reply.body, {
    status: reply.status,
    headers: service.lifecycle.draining ? { ...headers, connection: "close" } : headers,
  });
}

/** A route that does not exist, or not with this method. */
export function notFound(): Failure {
  return new Failure("not_found", "there is no such route, or not with this method; see the API's documentation");
}

/** The error object of the specification, with the headers that go with it. */
export function failureReply(failure: Failure): Reply {
  const headers: Record<string, string> = {};
  // A robot that is told to come back must know when.
  const seconds = failure.retryAfterSeconds ?? (failure.code === "engine_unavailable" ? 1 : undefined);
  if (seconds !== undefined) headers["retry-after"] = String(seconds);
  if (failure.status === 401) headers["www-authenticate"] = "Bearer";
  return { status: failure.status, body: JSON.stringify(failure.body()), headers };
}

/** Our own bug: the log has the stack, the client has the request's id. */
function fault(service: Service, requestId: string, error: unknown): Failure {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  service.log.error("request fault", { request: requestId, stack });
  return new Failure(
    "internal_error",
    `the service failed by a fault of its own; retry, and if it stays, report request ${requestId}`,
  );
}
