/**
 * Calls to one provider by Bun's `fetch`, each within time limits. A call that ends early closes its connection; one whose answer was
 * read to its end leaves the connection to later calls.
 */
import type { LlmConfig } from "../../config/llm.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Fault, kindOfStatus, refusal } from "./fault.ts";
import { TimeLimits } from "./time-limits.ts";

type ClientConfig = Pick<LlmConfig, "baseUrl" | "connections" | "firstByteSeconds" | "idleSeconds" | "totalSeconds">;

export interface CallOptions {
  /** Relative to the base address. */
  readonly path: string;
  readonly body: string;
  /** Whether the answer is asked for as a stream. The first byte of any other answer may take as long as the whole. */
  readonly stream: boolean;
  /** Stops the call. */
  readonly signal: AbortSignal;
}

/** Takes a provider's answer. A fault that a method returns stops the call. */
export interface Intake {
  /** The head of an answer with status 200 has come. */
  begin(contentType: string): Fault | undefined;
  bytes(piece: Uint8Array): Fault | undefined;
  /** The end of the answer was said: that of its connection is not waited for. */
  readonly ended: boolean;
}

/** Error codes of `fetch` for an answer that is no HTTP. One that ends within its head has the code of a closed connection. */
const NOT_HTTP = new Set([
  "Malformed_HTTP_Response",
  "InvalidHTTPResponse",
  "InvalidContentLength",
  "UnsupportedTransferEncoding",
  "UnexpectedData",
  "UnrequestedUpgrade",
]);

export class Client {
  private readonly baseUrl: string;
  private readonly headers: Readonly<Record<string, string>>;
  private running = 0;
  /** Resumes of the calls that wait for a free connection, oldest first. */
  private readonly waiting = new Set<() => void>();
  /** Connections that earlier calls have left open. An upper bound, since `fetch` does not say when one is closed. */
  private idle = 0;

  constructor(
    private readonly config: ClientConfig,
    apiKey: string | undefined,
    private readonly clock: Clock,
  ) {
    this.baseUrl = config.baseUrl.replace(/\/*$/, "/");
    this.headers = {
      "content-type": "application/json",
      "user-agent": "tendon",
      // A stream that is compressed comes late.
      "accept-encoding": "identity",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }

  /** Resolves when the whole answer was taken in; a fault says why it was not. Any status but 200 is a fault. */
  async call(call: CallOptions, intake: Intake): Promise<Fault | undefined> {
    const over = new AbortController();
    const end = (why: string) => over.abort(new Fault("unavailable", why));
    const stop = () => end("the service stopped the call");
    const limits = new TimeLimits(this.clock, 1_000 * this.config.totalSeconds, (limit) => end(`${limit} passed`));
    call.signal.addEventListener("abort", stop);
    if (call.signal.aborted) stop();
    try {
      return await this.connected(over.signal, () => this.exchange(call, intake, limits, over.signal));
    } catch (error) {
      if (error instanceof Fault) return error;
      throw error;
    } finally {
      limits.stop();
      call.signal.removeEventListener("abort", stop);
      // What is left of the answer is not read.
      over.abort();
    }
  }

  /** Does `work` as soon as fewer calls run than there may be connections; rejects if `over` comes first. */
  private async connected<T>(over: AbortSignal, work: () => Promise<T>): Promise<T> {
    over.throwIfAborted();
    if (this.running >= this.config.connections) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const stop = () => {
        this.waiting.delete(resolve);
        reject(over.reason);
      };
      this.waiting.add(resolve);
      over.addEventListener("abort", stop);
      await promise.finally(() => over.removeEventListener("abort", stop));
    } else this.running += 1;
    try {
      return await work();
    } finally {
      // The call that has waited longest goes on.
      const [next] = this.waiting;
      if (next) this.waiting.delete(next);
      if (next) next();
      else this.running -= 1;
    }
  }

  private async exchange(
    call: CallOptions,
    intake: Intake,
    limits: TimeLimits,
    over: AbortSignal,
  ): Promise<Fault | undefined> {
    const { firstByteSeconds, idleSeconds, totalSeconds } = this.config;
    limits.enter("first_byte_seconds", 1_000 * (call.stream ? firstByteSeconds : totalSeconds));
    const response = await this.response(call, over);
    if (response instanceof Fault) return response;
    let last = false;
    const touched = () => {
      if (last) return;
      last = intake.ended;
      if (last) limits.enter("the wait for the end of the connection", LIMITS.llmRestMs);
      else limits.enter("idle_seconds", 1_000 * idleSeconds);
    };
    const { status, headers } = response;
    const kind = kindOfStatus(status);
    let fault: Fault | undefined;
    if (kind) {
      const text = await errorText(response, touched, over);
      fault = refusal(kind, { status, retryAfter: headers.get("retry-after"), text }, this.clock.unixMs());
    } else {
      const take = (piece: Uint8Array) => intake.bytes(piece);
      fault = intake.begin(headers.get("content-type") ?? "") ?? (await read(response, touched, take, over));
    }
    const open = headers.get("connection")?.toLowerCase() !== "close";
    if (open && (kind || !fault)) this.idle += 1;
    return fault;
  }

  /**
   * A server may close a kept connection while a request is on its way there. Such a request is sent once more, on a new connection:
   * Bun's `fetch` does that itself for methods that may be repeated, and never for POST.
   */
  private async response(call: CallOptions, over: AbortSignal): Promise<Response | Fault> {
    const takesIdle = () => {
      const takes = this.idle > 0;
      if (takes) this.idle -= 1;
      return takes;
    };
    const reused = takesIdle();
    try {
      return await this.send(call, over, true).catch((error: unknown) => {
        // A connection may have been left open for this call when it was sent, and be counted only now.
        if (over.aborted || codeOf(error) !== "ECONNRESET" || !(reused || takesIdle())) throw error;
        return this.send(call, over, false);
      });
    } catch (error) {
      over.throwIfAborted();
      const code = codeOf(error);
      if (NOT_HTTP.has(code)) return new Fault("invalid", `no HTTP answer: ${code}`);
      return new Fault("unavailable", `no answer: ${code}`);
    }
  }

  private send({ path, body, stream }: CallOptions, signal: AbortSignal, keepalive: boolean): Promise<Response> {
    return fetch(`${this.baseUrl}${path}`, {
      method: "POST",
      headers: { ...this.headers, accept: stream ? "text/event-stream" : "application/json" },
      body,
      signal,
      keepalive,
      redirect: "manual",
      // The limits of the call are the only ones.
      timeout: false,
    } as RequestInit);
  }
}

/**
 * Hands the body's pieces to `take` until it returns a fault. Throws what `over` was aborted with. Bun's `fetch` loses bytes that come
 * together with the bad end of a connection: an end that was said there is not heard.
 */
async function read(
  { body }: Response,
  touched: () => void,
  take: (piece: Uint8Array) => Fault | undefined,
  over: AbortSignal,
): Promise<Fault | undefined> {
  const reader = body?.getReader();
  for (;;) {
    const next = await reader?.read().catch((error: unknown) => {
      over.throwIfAborted();
      return new Fault("invalid", `the answer was cut off: ${codeOf(error)}`);
    });
    if (next instanceof Fault) return next;
    if (!next?.value) return undefined;
    const fault = take(next.value);
    if (fault) return fault;
    touched();
  }
}

/** The body of an answer that refuses; undefined where it is longer than an error object. */
async function errorText(response: Response, touched: () => void, over: AbortSignal): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  const take = (piece: Uint8Array) => {
    bytes += piece.length;
    pieces.push(piece);
    return bytes > LIMITS.llmErrorBytesMax ? new Fault("invalid", "the error is too long") : undefined;
  };
  const fault = await read(response, touched, take, over);
  return fault ? undefined : Buffer.concat(pieces).toString("utf8");
}

/** The code of a system error, or its name. Its message may have an address. */
function codeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name);
}
