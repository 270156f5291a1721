/**
 * One connection to a provider, for one exchange after another. Bun's own HTTP clients were measured first (bench/llm.ts): `node:http`
 * adds 0.4 ms to the first token of a stream, and `fetch` cannot say when it has connected.
 */
import type { Socket } from "bun";
import type { Clock } from "../../../std/clock.ts";
import { type Head, Parser } from "./parser.ts";

export interface Address {
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
}

type Moved = (connection: Connection, how: "idle" | "closed") => void;

interface Terms {
  readonly clock: Clock;
  /** How long connecting may take, TLS included. */
  readonly connectMs: number;
  /** When it can have another exchange, and when it is gone. */
  readonly moved: Moved;
}

/** The code of the error of who has not connected in time. */
const CONNECT_PASSED = "connect_seconds passed";

/** What becomes of a request. After `end` or `fail` nothing more. */
export interface Exchange {
  head(head: Head): void;
  body(piece: Uint8Array): void;
  end(): void;
  /** `malformed`: what came is no response; `cut`: it broke off; `none`: not a byte came. */
  fail(how: "malformed" | "cut" | "none", why: string): void;
}

export class Connection {
  /** When it became idle, monotonic ms. */
  idleSinceMs = Number.NEGATIVE_INFINITY;
  /** It had a request. */
  used = false;
  /** Its server ended it instead of answering another request. */
  refusedAgain = false;
  /** Its last answer was a stream. */
  streamed = false;
  /** How long its server keeps it without a request. */
  keptMs: number | undefined;
  private exchange: { readonly to: Exchange; readonly parser: Parser } | undefined;
  private unsent: Uint8Array | undefined;
  private open = true;

  private constructor(
    private readonly socket: Socket<undefined>,
    private readonly moved: Moved,
  ) {}

  /** Rejects when there is no connection in time; a certificate that is not trusted is none. */
  static async connect({ hostname, port, tls }: Address, { clock, connectMs, moved }: Terms): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    let connection: Connection | undefined;
    let opened: Socket<undefined> | undefined;
    let over = false;
    const ready = (socket: Socket<undefined>) => {
      disarm();
      over = true;
      connection = new Connection(socket, moved);
      resolve(connection);
    };
    const fail = (error: Error) => {
      if (over) return;
      disarm();
      over = true;
      reject(error);
      opened?.terminate();
    };
    const disarm = clock.after(connectMs, () => fail(Object.assign(new Error("too late"), { code: CONNECT_PASSED })));
    const closed = (error?: Error) => {
      fail(error ?? new Error("the connection was closed"));
      connection?.closed(error);
    };
    Bun.connect<undefined>({
      hostname,
      port,
      ...(tls ? { tls: { serverName: hostname, rejectUnauthorized: true } } : {}),
      socket: {
        open: (socket) => {
          opened = socket;
          socket.setNoDelay(true);
          // Nobody waits for it any more.
          if (over) socket.terminate();
          else if (!tls) ready(socket);
        },
        handshake: (socket, trusted, error) => {
          if (over) return;
          if (trusted && !error) ready(socket);
          else fail(error ?? new Error("the certificate is not trusted"));
        },
        data: (_, bytes) => connection?.received(bytes),
        drain: () => connection?.drained(),
        // Whoever ends his side has sent all that there is.
        end: () => closed(),
        close: (_, error) => closed(error ?? undefined),
        error: (_, error) => closed(error),
        connectError: (_, error) => fail(error),
      },
    }).catch(fail);
    return await promise;
  }

  /** Sends a request; the connection is idle. */
  send(request: string, to: Exchange): void {
    this.used = true;
    this.exchange = { to, parser: new Parser(to) };
    this.write(Buffer.from(request));
  }

  /** It was given to somebody who does not need it any more, and has not used it. */
  release(): void {
    if (this.open) this.moved(this, "idle");
  }

  destroy(): void {
    this.exchange = undefined;
    if (!this.open) return;
    this.open = false;
    this.socket.terminate();
    this.moved(this, "closed");
  }

  private write(bytes: Uint8Array): void {
    const sent = this.socket.write(bytes);
    if (sent < 0) this.closed(undefined);
    else this.unsent = sent < bytes.length ? bytes.subarray(sent) : undefined;
  }

  private drained(): void {
    const { unsent } = this;
    this.unsent = undefined;
    if (unsent) this.write(unsent);
  }

  private received(bytes: Buffer): void {
    const { exchange } = this;
    // Nothing was asked.
    if (!exchange) {
      this.destroy();
      return;
    }
    const malformed = exchange.parser.feed(bytes);
    // The exchange may have ended the connection meanwhile.
    if (this.exchange !== exchange) return;
    if (malformed !== undefined) {
      this.destroy();
      exchange.to.fail("malformed", malformed);
    } else if (exchange.parser.reusable && this.unsent === undefined) {
      this.exchange = undefined;
      this.moved(this, "idle");
    } else if (exchange.parser.ended) this.destroy();
  }

  private closed(error: Error | undefined): void {
    const { exchange } = this;
    // Ending the socket comes here again.
    this.refusedAgain ||= exchange !== undefined && !exchange.parser.begun && Number.isFinite(this.idleSinceMs);
    const whole = exchange?.parser.close() ?? true;
    this.destroy();
    if (!whole) exchange?.to.fail(exchange.parser.begun ? "cut" : "none", codeOf(error));
  }
}

/** What of an error's own words can be told: a code of the system, never an address. */
export function codeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "closed";
}
