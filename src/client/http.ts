/** One HTTP call to a running service, with every way it can fail as a `Problem` and its exit code (contract section 6). */
import { LIMITS } from "../limits.ts";
import { parseJson, textAt, valueAt } from "../std/json.ts";
import { printable } from "../std/printable.ts";
import { EXIT, Problem } from "../std/problem.ts";

/** The address of a service and the key that is sent to it. */
export interface Service {
  /** Base address without a slash at its end, for example `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly apiKey: string;
}

interface Answer {
  readonly body: unknown;
  readonly headers: Headers;
}

/** An answer of any status. */
interface Reply extends Answer {
  readonly ok: boolean;
  readonly status: number;
}

/** A reply other than 200, with the status and the code that a command branches on. */
export class ErrorReply extends Problem {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | undefined,
  ) {
    super(message, status === 401 ? EXIT.notSignedIn : EXIT.failed);
  }
}

/** No answer came. Whether the service has got the request is not known, unless nobody listens at its address. */
export class NoAnswer extends Problem {
  constructor(
    message: string,
    readonly nobodyListens: boolean,
  ) {
    super(message, EXIT.unreachable);
  }
}

interface Request {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function get(service: Service, path: string, headers: Request["headers"] = {}): Promise<Answer | Problem> {
  return callSigned(service, path, { method: "GET", headers });
}

/** `POST path` with a JSON text; a reply other than 200 is a problem that says `code: message`. */
export function post(
  service: Service,
  path: string,
  json: string,
  headers: Request["headers"] = {},
): Promise<Answer | Problem> {
  return callSigned(service, path, jsonRequest(json, headers));
}

/** A `post` whose answer is read as it comes, until `signal` aborts. */
export async function postAndRead(
  service: Service,
  path: string,
  json: string,
  { headers, signal }: { readonly headers: Request["headers"]; readonly signal: AbortSignal },
): Promise<Response | Problem> {
  const wrong = keyProblem(service);
  if (wrong !== undefined) return wrong;
  try {
    const response = await send(service.url, path, signed(service, jsonRequest(json, headers)), signal);
    return response.ok ? response : errorReply(service.url, await replyOf(response));
  } catch (error) {
    return noAnswer(service.url, error);
  }
}

function jsonRequest(body: string, headers: Request["headers"]): Request {
  return { method: "POST", headers: { "content-type": "application/json", ...headers }, body };
}

/** `POST path` with the fields of a form and no key; the caller reads OAuth's errors. */
export function postForm(
  url: string,
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<Reply | Problem> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  return call(url, path, { method: "POST", headers, body: new URLSearchParams(fields).toString() });
}

/** How many models the service offers. Of all routes this one is the cheapest that tells whether a key is good. */
export async function countModels(service: Service): Promise<number | Problem> {
  const answer = await get(service, "/v1/models");
  if (answer instanceof Problem) return answer;
  const list = valueAt(answer.body, "data");
  if (Array.isArray(list)) return list.length;
  return new Problem(`the service at ${service.url} answered without a list of models; is it a tendon service?`);
}

/** A reply other than 200 in the service's words, from its own form of errors or from that of OAuth. */
export function errorReply(url: string, { body, status, headers }: Reply): ErrorReply {
  const code = textAt(body, "error", "code") ?? textAt(body, "error");
  const message = textAt(body, "error", "message") ?? textAt(body, "error_description");
  if (code !== undefined) {
    return new ErrorReply(printable(message === undefined ? code : `${code}: ${message}`), status, printable(code));
  }
  const elsewhere = headers.get("location");
  const what =
    elsewhere === null
      ? `HTTP ${status} without an error object; is it a tendon service?`
      : `that it is at ${printable(elsewhere)}; name that address with --base-url`;
  return new ErrorReply(`the service at ${url} answered ${what}`, status, undefined);
}

/** Why the service does not accept a WebSocket at `path`. Bun's client does not show the refused handshake's reply. */
export async function upgradeProblem(service: Service, path: string): Promise<Problem> {
  const headers = { connection: "Upgrade", upgrade: "websocket" };
  const answer = await get(service, path, headers);
  const told = answer instanceof Problem && !(answer instanceof ErrorReply && answer.code === "not_found");
  if (told) return answer;
  return new Problem(
    `the service at ${service.url} did not make a WebSocket of ${path}; it was busy a moment ago (try again), or a proxy in between lets no upgrades through`,
    EXIT.unreachable,
  );
}

/** A key that no header can carry. `fetch` would put the key into its error message. */
export function keyProblem({ apiKey }: Service): Problem | undefined {
  if (/^[\x21-\x7e]+$/.test(apiKey)) return undefined;
  return new Problem(
    "the API key is empty or has a character that no key has, such as a space; correct TENDON_API_KEY or sign in again",
    EXIT.notSignedIn,
  );
}

async function callSigned(service: Service, path: string, request: Request): Promise<Answer | Problem> {
  const wrong = keyProblem(service);
  if (wrong !== undefined) return wrong;
  const reply = await call(service.url, path, signed(service, request));
  if (reply instanceof Problem || reply.ok) return reply;
  return errorReply(service.url, reply);
}

function signed({ apiKey }: Service, request: Request): Request {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${apiKey}` } };
}

async function call(url: string, path: string, request: Request): Promise<Reply | Problem> {
  try {
    return await replyOf(await send(url, path, request, AbortSignal.timeout(LIMITS.clientAnswerMs)));
  } catch (error) {
    return noAnswer(url, error);
  }
}

/** A redirect is not followed: the key is for this address alone. */
function send(url: string, path: string, request: Request, signal: AbortSignal): Promise<Response> {
  return fetch(`${url}${path}`, { ...request, redirect: "manual", signal });
}

async function replyOf(response: Response): Promise<Reply> {
  const { ok, status, headers } = response;
  return { ok, status, headers, body: parseJson(await response.text()) };
}

const NOBODY = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH"]);

/** Why a request brought no answer. */
export function noAnswer(url: string, error: unknown): NoAnswer {
  if (error instanceof Error && error.name === "TimeoutError") {
    return new NoAnswer(
      `the service at ${url} did not answer within ${LIMITS.clientAnswerMs / 1000} s; is it the right address?`,
      false,
    );
  }
  // Bun adds advice for programmers.
  const advice = /\. (For more information|Is the computer)[\s\S]*$/;
  const reason = (error instanceof Error ? error.message : String(error)).replace(advice, "");
  if (!NOBODY.has(String((error as { readonly code?: unknown }).code))) {
    return new NoAnswer(`the connection to ${url} broke: ${reason}`, false);
  }
  return new NoAnswer(
    `cannot reach a service at ${url} (${reason}); start one with 'tendon serve --dev' or name another with --base-url`,
    true,
  );
}
