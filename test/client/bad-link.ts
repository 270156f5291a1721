/** A connection to a service that fails on purpose: it cuts, damages, answers in the service's place, or is gone. */
import { connect, createServer, type Server, type Socket } from "node:net";

/** Bytes are counted from the beginning of the request that it strikes, or of its answer. */
export type Fault =
  | { readonly kind: "cut up" | "cut down" | "flip up" | "flip down"; readonly atByte: number }
  /** In the service's place; the connection ends. */
  | { readonly kind: "answer"; readonly status: number; readonly code: string; readonly headers?: string }
  /** The service hears nothing of `Range`. */
  | { readonly kind: "hide range" };

interface Armed {
  /** Beginning of a request line. */
  readonly match: string;
  readonly fault: Fault;
}

/** What strikes one connection now. */
interface Struck {
  readonly fault: Fault;
  up: number;
  down: number;
}

export class BadLink implements AsyncDisposable {
  /** Heads of the requests, in their order. */
  readonly heads: string[] = [];
  /** Called with each request line, before the request passes. */
  onRequest: (line: string) => void = () => {};
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;
  private armed: Armed[] = [];
  private gone = false;

  private constructor(private readonly upstream: URL) {
    this.server = createServer((client) => this.accept(client));
  }

  static async to(url: string): Promise<BadLink> {
    const link = new BadLink(new URL(url));
    const listening = Promise.withResolvers<void>();
    link.server.listen(0, "127.0.0.1", listening.resolve);
    await listening.promise;
    return link;
  }

  get url(): string {
    const address = this.server.address();
    return `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
  }

  /** The next request whose line begins so meets the fault, once. */
  next(match: string, fault: Fault): void {
    this.armed.push({ match, fault });
  }

  /** Cuts everything and takes no connection, until `mend`. */
  cut(): void {
    this.gone = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.gone = false;
  }

  /** Lines of the requests that begin so, and forgets all of them. */
  take(match: string): string[] {
    const found = this.heads.filter((head) => head.startsWith(match)).map((head) => head.split(" HTTP/")[0] ?? "");
    this.heads.length = 0;
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    const closed = Promise.withResolvers<void>();
    this.server.close(() => closed.resolve());
    await closed.promise;
  }

  private accept(client: Socket): void {
    if (this.gone) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(this.upstream.port), this.upstream.hostname);
    let struck: Struck | undefined;
    this.pair(client, upstream);
    client.on("data", (bytes: Buffer) => {
      struck = this.newRequest(bytes) ?? struck;
      if (struck === undefined) upstream.write(bytes);
      else up(struck, bytes, client, upstream);
      if (this.gone) client.destroy();
    });
    upstream.on("data", (bytes: Buffer) => {
      if (struck === undefined) client.write(bytes);
      else down(struck, bytes, client);
    });
  }

  /** Whether a request begins with these bytes, and what it shall meet. */
  private newRequest(bytes: Buffer): Struck | undefined {
    const text = bytes.subarray(0, 4_096).toString("latin1");
    if (!/^(GET|PUT|POST|DELETE) \S+ HTTP\/1\.1\r\n/.test(text)) return undefined;
    const head = text.split("\r\n\r\n")[0] ?? "";
    this.heads.push(head);
    this.onRequest(head.split(" HTTP/")[0] ?? "");
    const index = this.armed.findIndex(({ match }) => head.startsWith(match));
    const [found] = index === -1 ? [] : this.armed.splice(index, 1);
    return found === undefined ? undefined : { fault: found.fault, up: 0, down: 0 };
  }

  private pair(one: Socket, other: Socket): void {
    for (const [socket, peer] of [
      [one, other],
      [other, one],
    ] as const) {
      this.sockets.add(socket);
      socket.on("error", () => peer.destroy());
      socket.on("close", () => {
        this.sockets.delete(socket);
        peer.destroy();
      });
    }
  }
}

function up(struck: Struck, bytes: Buffer, client: Socket, upstream: Socket): void {
  const { fault } = struck;
  const at = fault.kind === "cut up" || fault.kind === "flip up" ? fault.atByte - struck.up : Number.POSITIVE_INFINITY;
  struck.up += bytes.length;
  if (fault.kind === "answer") {
    const body = JSON.stringify({ error: { code: fault.code, type: "api_error", message: "on purpose" } });
    const extra = fault.headers === undefined ? "" : `${fault.headers}\r\n`;
    client.end(
      `HTTP/1.1 ${fault.status} Fault\r\n${extra}connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return;
  }
  if (fault.kind === "hide range") {
    upstream.write(bytes.toString("latin1").replace(/^range: /im, "xange: "), "latin1");
    return;
  }
  if (fault.kind === "cut up" && at <= bytes.length) {
    client.destroy();
    return;
  }
  upstream.write(fault.kind === "flip up" ? flipped(bytes, at) : bytes);
}

function down(struck: Struck, bytes: Buffer, client: Socket): void {
  const { fault } = struck;
  const at =
    fault.kind === "cut down" || fault.kind === "flip down" ? fault.atByte - struck.down : Number.POSITIVE_INFINITY;
  struck.down += bytes.length;
  if (fault.kind === "cut down" && at <= bytes.length) {
    client.write(bytes.subarray(0, Math.max(0, at)), () => client.destroy());
    return;
  }
  client.write(fault.kind === "flip down" ? flipped(bytes, at) : bytes);
}

function flipped(bytes: Buffer, at: number): Buffer {
  if (at < 0 || at >= bytes.length) return bytes;
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
