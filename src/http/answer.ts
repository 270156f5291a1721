/** The one response of a request, made of what its handler answers: request id, error objects, counting, the last catch. */
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { stackOf } from "../std/log.ts";
import type { HttpDeps } from "./deps.ts";
import { byteStream } from "./download.ts";
import { Origin } from "./origin.ts";
import type { Arrival, FailedReply, Outcome, Reply } from "./route.ts";
import { type Events, eventStream, type Send, SSE_HEADERS } from "./sse.ts";
import type { FailureForm } from "./surface.ts";

/** What answers a request. */
export interface Target {
  /** The route's name in metrics. */
  readonly name: string;
  /** How failures are written that do not have the error object. */
  readonly failureForm?: FailureForm;
  readonly run: (arrival: Arrival) => Promise<Outcome>;
}

/**
 * Takes a request to its target and makes its response; none for a connection that has become a WebSocket. The request
 * counts as running until its response has ended, a stream's with its last event.
 */
export async function answer(
  deps: HttpDeps,
  { name, failureForm, run }: Target,
  request: Request,
  params: Arrival["params"],
  server: Arrival["server"],
): Promise<Response | undefined> {
  const { clock, lifecycle } = deps;
  const requestId = makeId("req_", clock);
  const origin = new Origin({ request, server }, deps.proxies);
  const arrival = { request, requestId, arrivedMs: clock.monotonicMs(), params, server, origin };
  lifecycle.enter();
  const outcome = await run(arrival).catch((error) => fault(deps, requestId, error));
  if (outcome === "upgraded") {
    lifecycle.leave();
    return undefined;
  }
  const failed = outcome instanceof Failure ? { failure: outcome } : outcome;
  if ("failure" in failed) note(deps, requestId, failed.failure);
  const { status, body, headers, cookies = [] } = "failure" in failed ? failureReply(failed, failureForm) : failed;
  deps.requests.inc({ route: name, status: String(status) });
  const [type, sent] = typed(deps, requestId, body);
  const response = new Response(sent, {
    status,
    headers: {
      ...type,
      ...headers,
      ...(request.url.startsWith("https:") ? TLS_ALWAYS : {}),
      "x-request-id": requestId,
      // A client with a persistent connection then opens a new one, which can lead to another server.
      ...(lifecycle.draining ? { connection: "close" } : {}),
    },
  });
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}

/** Only where this process ends TLS: a proxy in front speaks plain HTTP to it, and decides by itself. */
const TLS_ALWAYS = { "strict-transport-security": "max-age=31536000" } as const;

const JSON_TYPE = { "content-type": "application/json" } as const;
const BYTES_TYPE = { "content-type": "application/octet-stream" } as const;

/** The body as the server takes it, with the headers of its kind. */
function typed(deps: HttpDeps, requestId: string, body: Reply["body"]): [Record<string, string>, Bun.BodyInit | null] {
  if (body !== null && typeof body === "object" && !(body instanceof Uint8Array)) {
    if ("write" in body) return [SSE_HEADERS, eventBody(deps, requestId, body)];
    if ("path" in body) {
      // The server sends it by itself and does not report its end.
      deps.lifecycle.leave();
      return [BYTES_TYPE, Bun.file(body.path).slice(body.from, body.to)];
    }
    const ended = (error?: unknown) => {
      if (error !== undefined) fault(deps, requestId, error);
      deps.lifecycle.leave();
    };
    const cut = () => deps.log.info("download cut", { request: requestId, reason: "the client reads too slowly" });
    return [BYTES_TYPE, byteStream(body, { clock: deps.clock, cut, ended })];
  }
  deps.lifecycle.leave();
  return [body === null ? {} : typeof body === "string" ? JSON_TYPE : BYTES_TYPE, body];
}

function eventBody(deps: HttpDeps, requestId: string, events: Events): ReadableStream<Uint8Array> {
  const write = async (send: Send) => {
    const failure = await events.write(send).catch((error) => fault(deps, requestId, error));
    if (failure) {
      note(deps, requestId, failure);
      for (const event of events.failed(failure)) send(event);
    }
    deps.lifecycle.leave();
  };
  const cut = () => deps.log.info("stream cut", { request: requestId, reason: "the client does not read" });
  return eventStream(events, write, cut);
}

/** Logs a failure's detail, which clients do not see. */
function note({ log }: HttpDeps, requestId: string, { code, detail }: Failure): void {
  if (detail !== undefined) log.error("request failed", { request: requestId, code, detail });
}

/** A bug of ours: the log has the stack, the client has the request's id. */
function fault({ log }: HttpDeps, requestId: string, error: unknown): Failure {
  log.error("request fault", { request: requestId, stack: stackOf(error) });
  return new Failure(
    EVERY.internal_error,
    `the service failed because of a bug in it; retry, and if it stays, report request ${requestId}`,
  );
}

/** The error object of the specification with the headers that go with it, or the surface's own form of its failures. */
export function failureReply({ failure, headers }: FailedReply, form?: FailureForm): Reply {
  const { row, status, retryAfterSeconds = row.retryAfterSeconds } = failure;
  const own = form && Object.values(form.table).includes(row) ? form.write(failure) : undefined;
  return {
    status,
    body: own ? own.body : JSON.stringify(failure.body()),
    headers: {
      ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
      ...(row.final ? { "x-should-retry": "false" } : {}),
      ...(status === 401 && !own ? { "www-authenticate": "Bearer" } : {}),
      ...own?.headers,
      ...headers,
    },
  };
}
