/**
 * One connection to a provider, for one exchange after another. Bun's own HTTP clients were measured first (bench/llm.ts): `node:http`
 * adds 0.4 ms to the first token of a stream, and `fetch` cannot say when it has connected.
 */
import type { Socket } from "bun";
import { type Head, Parser } from "./parser.ts";

export interface Address {
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
}

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
  /** Its last answer was a stream. */
  streamed = false;
  /** How long its server keeps it without a request. */
  keptMs: number | undefined;
  private exchange: { readonly to: Exchange; readonly parser: Parser } | undefined;
  private unsent: Uint8Array | undefined;
  private open = true;

  private constructor(
    private readonly socket: Socket<undefined>,
    /** When it can have another exchange, and when it is gone. */
    private readonly moved: (connection: Connection, how: "idle" | "closed") => void,
  ) {}

  /** Rejects when there is no connection; a certificate that is not trusted is none. */
  static async connect(
    { hostname, port, tls }: Address,
    moved: (connection: Connection, how: "idle" | "closed") => void,
  ): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    let connection: Connection | undefined;
    const ready = (socket: Socket<undefined>) => {
      connection = new Connection(socket, moved);
      resolve(connection);
    };
    const closed = (error?: Error) => {
      reject(error ?? new Error("the connection was closed"));
      connection?.closed(error);
    };
    const opened = Bun.connect<undefined>({
      hostname,
      port,
      ...(tls ? { tls: { serverName: hostname, rejectUnauthorized: true } } : {}),
      socket: {
        open: (socket) => {
          socket.setNoDelay(true);
          if (!tls) ready(socket);
        },
        handshake: (socket, trusted, error) => {
          if (trusted && !error) return ready(socket);
          reject(error ?? new Error("the certificate is not trusted"));
          socket.terminate();
        },
        data: (_, bytes) => connection?.received(bytes),
        drain: () => connection?.drained(),
        // Whoever ends his side has sent all that there is.
        end: () => closed(),
        close: (_, error) => closed(error ?? undefined),
        error: (_, error) => closed(error),
        connectError: (_, error) => reject(error),
      },
    });
    opened.catch(reject);
    return await promise;
  }

  /** Sends a request; the connection is idle. */
  send(request: string, to: Exchange): void {
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
