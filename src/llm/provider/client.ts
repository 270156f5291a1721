/**
 * HTTP to one provider: a bounded pool of kept connections, and calls whose every wait is bounded. A call that is over, however it
 * ends, has closed its connection or given it back.
 */
import http from "node:http";
import https from "node:https";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Fault, kindOfStatus, retryAfter } from "./fault.ts";
import { Said } from "./said.ts";
import { Watch } from "./watch.ts";

export interface ClientOptions {
  readonly baseUrl: string;
  /** A secret. */
  readonly apiKey: string | undefined;
  readonly connections: number;
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
  readonly clock: Clock;
}

export interface CallOptions {
  /** Relative to the base address. */
  readonly path: string;
  readonly body: string;
  /** Whether the answer is asked for as a stream: else its first byte may take as long as the whole. */
  readonly stream: boolean;
  /** Stops the call. */
  readonly signal: AbortSignal;
}

/** What takes a provider's answer in. A fault that a method returns stops the call. */
export interface Intake {
  /** Of a status 200. */
  begin(contentType: string): Fault | undefined;
  bytes(piece: Uint8Array): Fault | undefined;
}

export class Client {
  private readonly url: URL;
  private readonly agent: http.Agent;
  private readonly headers: Readonly<Record<string, string>>;

  constructor(private readonly options: ClientOptions) {
    const { baseUrl, apiKey, connections } = options;
    this.url = new URL(baseUrl.replace(/\/*$/, "/"));
    const pool = { keepAlive: true, maxSockets: connections, maxFreeSockets: LIMITS.llmIdleConnectionsMax };
    this.agent = this.url.protocol === "https:" ? new https.Agent(pool) : new http.Agent(pool);
    this.headers = {
      "content-type": "application/json",
      "user-agent": "tendon",
      // What comes is parsed as it comes.
      "accept-encoding": "identity",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
  }

  /** Resolves when the whole answer was taken in; a fault says why it was not. Anything but 200 is a fault. */
  call(options: CallOptions, intake: Intake): Promise<Fault | undefined> {
    const { promise, resolve } = Promise.withResolvers<Fault | undefined>();
    const { clock, connectMs, firstByteMs, idleMs, totalMs } = this.options;
    const { path, body, stream, signal } = options;
    let over = false;
    const end = (fault: Fault | undefined) => {
      if (over) return;
      over = true;
      watch.stop();
      signal.removeEventListener("abort", stop);
      if (fault) request.destroy();
      resolve(fault);
    };
    const stop = () => end(new Fault("unavailable", "the service stopped the call"));
    const watch = new Watch(clock, totalMs, (limit) => end(new Fault("unavailable", `${limit} passed`)));
    const { protocol, hostname, port, pathname } = this.url;
    const request = (protocol === "https:" ? https : http).request({
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? undefined : Number(port),
      path: pathname + path,
      method: "POST",
      agent: this.agent,
      headers: {
        ...this.headers,
        accept: stream ? "text/event-stream" : "application/json",
        "content-length": String(Buffer.byteLength(body)),
      },
    });
    const connected = () => watch.enter("first_byte_seconds", stream ? firstByteMs : totalMs);
    request.on("socket", (socket) => {
      if (socket.connecting) socket.once("connect", connected);
      else connected();
    });
    request.on("error", (error) => end(new Fault("unavailable", `no answer: ${codeOf(error)}`)));
    request.on("response", (response) => {
      const { statusCode = 0, headers } = response;
      const refused = kindOfStatus(statusCode);
      const said = refused && new Said();
      const begun = said ? undefined : intake.begin(headers["content-type"] ?? "");
      if (begun) return end(begun);
      let first = true;
      response.on("data", (piece: Uint8Array) => {
        if (over) return;
        if (first) watch.enter("idle_seconds", idleMs);
        else watch.touch();
        first = false;
        const fault = said ? said.bytes(piece) : intake.bytes(piece);
        if (fault) end(fault);
      });
      const cut = () =>
        end(said ? this.refusal(statusCode, headers, said) : new Fault("invalid", "the answer was cut off"));
      response.on("error", cut);
      response.on("aborted", cut);
      response.on("end", () => {
        if (said) end(this.refusal(statusCode, headers, said));
        else if (response.complete) end(undefined);
        else cut();
      });
      response.on("close", cut);
    });
    watch.enter("connect_seconds", connectMs);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    else request.end(body);
    return promise;
  }

  /** Ends idle connections. */
  close(): void {
    this.agent.destroy();
  }

  private refusal(status: number, headers: http.IncomingHttpHeaders, said: Said): Fault {
    const { apiKey, clock } = this.options;
    const seconds = retryAfter(headers["retry-after"], clock.unixMs());
    const text = said.message(apiKey);
    return new Fault(kindOfStatus(status) ?? "invalid", `status ${status}${text === undefined ? "" : `: ${text}`}`, {
      status,
      ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
      ...(text === undefined ? {} : { said: text }),
    });
  }
}

/** What of an error's own words can be told: a code of the system, never an address. */
function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error.name;
}
