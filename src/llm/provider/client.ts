/**
 * Calls to one provider over its pool of connections, every wait of a call bounded. A call that is over, however it ends, has ended
 * its connection or given it back.
 */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Fault, kindOfStatus, retryAfter } from "./fault.ts";
import { type Connection, codeOf, type Exchange } from "./http/connection.ts";
import type { Head } from "./http/parser.ts";
import { Pool } from "./http/pool.ts";
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
  /** On a connection that had no request before, which its server cannot be closing at this moment. */
  readonly fresh: boolean;
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
  private readonly pool: Pool;
  private readonly path: string;
  /** Of every request, up to its length. */
  private readonly head: string;

  constructor(private readonly options: ClientOptions) {
    const { baseUrl, apiKey, connections, connectMs, clock } = options;
    const { protocol, hostname, port, pathname, host } = new URL(baseUrl.replace(/\/*$/, "/"));
    const tls = protocol === "https:";
    const address = { hostname: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (tls ? 443 : 80), tls };
    this.pool = new Pool({
      address,
      connectionsMax: connections,
      connectMs,
      idleMax: LIMITS.llmIdleConnectionsMax,
      idleMs: LIMITS.llmConnectionIdleMs,
      clock,
    });
    this.path = pathname;
    const fields = [
      `host: ${host}`,
      "content-type: application/json",
      "user-agent: tendon",
      // What comes is parsed as it comes.
      "accept-encoding: identity",
      ...(apiKey === undefined ? [] : [`authorization: Bearer ${apiKey}`]),
    ];
    this.head = `${fields.join("\r\n")}\r\n`;
  }

  /** Resolves when the whole answer was taken in; a fault says why it was not. Anything but 200 is a fault. */
  call(options: CallOptions, intake: Intake): Promise<Fault | undefined> {
    const { stream, fresh, signal } = options;
    // Without the body: a call may last far longer than it is needed.
    const call = new Call(this.options, { stream, fresh, signal }, intake, this.request(options));
    return call.run(this.pool);
  }

  /** Ends idle connections. */
  close(): void {
    this.pool.close();
  }

  private request({ path, body, stream }: CallOptions): string {
    const accept = stream ? "text/event-stream" : "application/json";
    const length = Buffer.byteLength(body);
    return `POST ${this.path}${path} HTTP/1.1\r\n${this.head}accept: ${accept}\r\ncontent-length: ${length}\r\n\r\n${body}`;
  }
}

class Call implements Exchange {
  private readonly done = Promise.withResolvers<Fault | undefined>();
  private readonly watch: Watch;
  private over = false;
  private connection: Connection | undefined;
  /** Of an answer that is none. */
  private refused: { readonly head: Head; readonly said: Said } | undefined;
  private begun = false;
  private withdraw = () => {};
  private readonly stop = () => this.finish(new Fault("unavailable", "the service stopped the call"));

  constructor(
    private readonly client: ClientOptions,
    private readonly call: Pick<CallOptions, "stream" | "fresh" | "signal">,
    private readonly intake: Intake,
    /** Until the connection has it, or nobody wants it any more. */
    private request: string | undefined,
  ) {
    this.watch = new Watch(client.clock, client.totalMs, (limit) =>
      this.finish(new Fault("unavailable", `${limit} passed`)),
    );
  }

  run(pool: Pool): Promise<Fault | undefined> {
    const { signal, fresh } = this.call;
    // The pool bounds connecting: until then only the whole is.
    this.watch.enter("total_seconds", this.client.totalMs);
    signal.addEventListener("abort", this.stop);
    if (signal.aborted) this.stop();
    else this.withdraw = pool.take(fresh, (given) => this.connected(given));
    return this.done.promise;
  }

  head(head: Head): void {
    const { connection } = this;
    const kept = /timeout=(\d{1,6})/.exec(head.headers.get("keep-alive") ?? "")?.[1];
    // A second before the server ends it.
    if (connection && kept !== undefined) connection.keptMs = 1000 * (Number(kept) - 1);
    const type = head.headers.get("content-type") ?? "";
    if (connection) connection.streamed = /^text\/event-stream/i.test(type);
    if (kindOfStatus(head.status)) this.refused = { head, said: new Said() };
    else this.stopFor(this.intake.begin(type));
  }

  body(piece: Uint8Array): void {
    if (this.over) return;
    if (this.begun) this.watch.touch();
    else this.watch.enter("idle_seconds", this.client.idleMs);
    this.begun = true;
    if (this.refused) this.refused.said.add(piece);
    else this.stopFor(this.intake.bytes(piece));
  }

  end(): void {
    this.finish(this.refused && this.refusal(this.refused), "whole");
  }

  fail(how: Parameters<Exchange["fail"]>[0], why: string): void {
    if (this.refused) this.finish(this.refusal(this.refused));
    else if (how === "none") this.finish(new Fault("unavailable", `no answer: ${why}`));
    else if (how === "cut") this.finish(new Fault("invalid", `the answer was cut off: ${why}`));
    else this.finish(new Fault("invalid", `no HTTP answer: ${why}`));
  }

  private connected(given: Connection | Error): void {
    const { request = "" } = this;
    this.request = undefined;
    if (given instanceof Error) {
      this.finish(new Fault("unavailable", `no connection: ${codeOf(given)}`));
    } else if (this.over) {
      given.release();
    } else {
      this.connection = given;
      const { firstByteMs, totalMs } = this.client;
      this.watch.enter("first_byte_seconds", this.call.stream ? firstByteMs : totalMs);
      given.send(request, this);
    }
  }

  private stopFor(fault: Fault | undefined): void {
    if (fault) this.finish(fault);
  }

  /** `whole`: the connection is the pool's again, also after an answer that refuses. */
  private finish(fault: Fault | undefined, how?: "whole"): void {
    if (this.over) return;
    this.over = true;
    this.request = undefined;
    this.watch.stop();
    this.call.signal.removeEventListener("abort", this.stop);
    this.withdraw();
    if (how !== "whole") this.connection?.destroy();
    this.done.resolve(fault);
  }

  private refusal({ head: { status, headers }, said }: { readonly head: Head; readonly said: Said }): Fault {
    const { apiKey, clock } = this.client;
    const seconds = retryAfter(headers.get("retry-after"), clock.unixMs());
    const text = said.message(apiKey);
    return new Fault(kindOfStatus(status) ?? "invalid", `status ${status}${text === undefined ? "" : `: ${text}`}`, {
      status,
      ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
      ...(text === undefined ? {} : { said: text }),
    });
  }
}
