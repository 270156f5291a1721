/**
 * One request to run storage. It may take hours over a slow link: what ends it is not its length but a span in which nothing moves.
 */
import type { Clock } from "../../std/clock.ts";
import { parseJson } from "../../std/json.ts";
import type { Problem } from "../../std/problem.ts";
import { ErrorReply, errorReply, keyProblem, noAnswer, type Service } from "../http.ts";
import { Silence } from "../waiting.ts";
import { blocksOf, type Piece, PieceBroken } from "./piece.ts";

export interface RunRequest {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** With its query. */
  readonly route: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON text, or a span of a file with an ear for each block that the connection takes. */
  readonly body?: string | { readonly piece: Piece; readonly moved: (bytes: number) => void };
}

export interface Surroundings {
  readonly clock: Clock;
  /** Gives the request up; what is returned then means nothing. */
  readonly signal: AbortSignal;
}

/** An error of the service, and when it may be asked again. */
export class RunRefusal extends ErrorReply {
  constructor(
    { message, status, code }: ErrorReply,
    readonly retryAfterMs: number | undefined,
  ) {
    super(message, status, code);
  }
}

/** Longest span without a byte or an answer. What a slow link's buffers hold must be able to drain in it. */
const SILENT_MS = 120_000;

/** The whole answer, which must be small. */
export async function exchange(
  service: Service,
  request: RunRequest,
  around: Surroundings,
): Promise<{ readonly body: unknown } | Problem> {
  return await during(service, request, around, async (response) => ({ body: parseJson(await response.text()) }));
}

/** The answer's head, then each block of its body to `take`. */
export async function download<T>(
  service: Service,
  request: RunRequest,
  around: Surroundings,
  take: (response: Response, blocks: AsyncIterable<Uint8Array>) => Promise<T | Problem>,
): Promise<T | Problem> {
  return await during(service, request, around, (response, silence) => take(response, blocksIn(response, silence)));
}

async function* blocksIn({ body }: Response, silence: Silence): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  for await (const block of body) {
    silence.heard();
    yield block;
  }
}

async function during<T>(
  service: Service,
  request: RunRequest,
  { clock, signal }: Surroundings,
  read: (response: Response, silence: Silence) => Promise<T | Problem>,
): Promise<T | Problem> {
  const wrong = keyProblem(service);
  if (wrong !== undefined) return wrong;
  const silence = new Silence(clock, SILENT_MS);
  try {
    const response = await fetch(`${service.url}${request.route}`, {
      method: request.method,
      headers: headersOf(service, request),
      body: bodyOf(request, silence),
      // The key is for this address alone.
      redirect: "manual",
      signal: AbortSignal.any([signal, silence.signal]),
    });
    silence.heard();
    return response.ok ? await read(response, silence) : await refusal(service, response, clock);
  } catch (error) {
    if (error instanceof PieceBroken) return error.problem;
    return noAnswer(service.url, silence.signal.aborted ? `nothing moved for ${SILENT_MS / 1000} s` : error);
  } finally {
    silence.stop();
  }
}

function headersOf({ apiKey }: Service, { headers, body }: RunRequest): Record<string, string> {
  const length: Record<string, string> = {};
  if (typeof body === "string") length["content-type"] = "application/json";
  else if (body !== undefined) length["content-length"] = String(body.piece.end - body.piece.start);
  // Ranges count the bytes of the file, not those of a compressed one.
  return { "accept-encoding": "identity", ...length, ...headers, authorization: `Bearer ${apiKey}` };
}

function bodyOf({ body }: RunRequest, silence: Silence): string | AsyncGenerator<Uint8Array<ArrayBuffer>> | null {
  if (body === undefined) return null;
  return typeof body === "string" ? body : counted(body.piece, body.moved, silence);
}

async function* counted(piece: Piece, moved: (bytes: number) => void, silence: Silence) {
  for await (const block of blocksOf(piece)) {
    yield block;
    silence.heard();
    moved(block.length);
  }
}

async function refusal(service: Service, response: Response, clock: Clock): Promise<RunRefusal> {
  const { ok, status, headers } = response;
  const reply = errorReply(service.url, { ok, status, headers, body: parseJson(await response.text()) });
  return new RunRefusal(reply, retryAfterMs(headers.get("retry-after"), clock));
}

/** `Retry-After` is a number of seconds or a date (RFC 9110). */
export function retryAfterMs(value: string | null, clock: Pick<Clock, "unixMs">): number | undefined {
  if (value === null) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - clock.unixMs());
}
