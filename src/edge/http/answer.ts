/** Every answer leaves through here: request id, error objects, counting, and the last catch. */
import { Failure } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import { ROBOT } from "../../error/robot.ts";
import { makeId } from "../../std/ids.ts";
import type { Service } from "../service.ts";
import { type Events, eventStream, type Send } from "./events.ts";

/** A successful answer. */
export interface Reply {
  readonly status: number;
  readonly body: string | null | Events;
  /** Lower-case names; `content-type` is that of the body unless named here. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Runs `work` and turns its outcome into the one response of this request. `route` is the name for metrics, from a
 * closed list. A stream counts as running until it has ended.
 */
export async function answer(service: Service, route: string, work: () => Promise<Reply | Failure>): Promise<Response> {
  const requestId = makeId("req_", service.clock);
  const { lifecycle } = service;
  lifecycle.enter();
  const outcome = await work().catch((error) => fault(service, requestId, error));
  if (outcome instanceof Failure) note(service, requestId, outcome);
  const { status, body, headers: own } = outcome instanceof Failure ? failureReply(outcome) : outcome;
  service.requests.inc({ route, status: String(status) });
  const streams = body !== null && typeof body === "object";
  if (!streams) lifecycle.leave();
  const headers = {
    ...(streams ? EVENT_STREAM : body === null ? {} : { "content-type": "application/json" }),
    ...own,
    "x-request-id": requestId,
    // A client that keeps its connection learns to look for another server.
    ...(lifecycle.draining ? { connection: "close" } : {}),
  };
  return new Response(streams ? stream(service, requestId, body) : body, { status, headers });
}

const EVENT_STREAM = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // A proxy that collects what it passes on would hold the first comment back.
  "x-accel-buffering": "no",
} as const;

function stream(service: Service, requestId: string, events: Events): ReadableStream<Uint8Array> {
  const write = async (send: Send) => {
    const failure = await events.write(send).catch((error) => fault(service, requestId, error));
    if (failure) {
      note(service, requestId, failure);
      for (const event of events.failed(failure)) send(event);
    }
    service.lifecycle.leave();
  };
  return eventStream(write, () => events.left());
}

/** What a failure has to say to the operator alone. */
function note(service: Service, requestId: string, failure: Failure): void {
  if (failure.detail === undefined) return;
  service.log.error("request failed", { request: requestId, code: failure.code, detail: failure.detail });
}

/** A route that does not exist, or not with this method. */
export function notFound(): Failure {
  return new Failure(EVERY.not_found, "there is no such route, or not with this method; see the API's documentation");
}

/** The error object of the specification, with the headers that go with it. */
export function failureReply(failure: Failure): Reply {
  const headers: Record<string, string> = {};
  // A robot that is told to come back must know when.
  const seconds = failure.retryAfterSeconds ?? (failure.row === ROBOT.engine_unavailable ? 1 : undefined);
  if (seconds !== undefined) headers["retry-after"] = String(seconds);
  if (failure.final) headers["x-should-retry"] = "false";
  if (failure.status === 401) headers["www-authenticate"] = "Bearer";
  return { status: failure.status, body: JSON.stringify(failure.body()), headers };
}

/** Our own bug: the log has the stack, the client has the request's id. */
function fault(service: Service, requestId: string, error: unknown): Failure {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  service.log.error("request fault", { request: requestId, stack });
  return new Failure(
    EVERY.internal_error,
    `the service failed by a fault of its own; retry, and if it stays, report request ${requestId}`,
  );
}
