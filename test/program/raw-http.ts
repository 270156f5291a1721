/** HTTP by hand on one connection: addresses and headers that no client would send, and answers as they stand on the wire. */
import { connect, type Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export class RawHttp implements Disposable {
  private received: Buffer = Buffer.alloc(0);
  private ended = false;
  private wake = () => {};

  private constructor(
    private readonly socket: Socket,
    private readonly host: string,
  ) {
    socket.on("data", (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
      this.wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.ended = true;
      this.wake();
    });
  }

  /** `as`: another name of the same host. */
  static async to(url: string, as?: string): Promise<RawHttp> {
    const { hostname, port, host } = new URL(url);
    const connected = Promise.withResolvers<void>();
    const socket = connect(Number(port), hostname, connected.resolve);
    await connected.promise;
    return new RawHttp(socket, as ?? host);
  }

  /** Sends a request and reads its answer; one to HEAD has no body. */
  async ask(method: string, target: string, headers: readonly string[] = [], body = ""): Promise<RawAnswer> {
    this.write(method, target, headers, body);
    return await this.read(method);
  }

  write(method: string, target: string, headers: readonly string[] = [], body = ""): void {
    const length = body === "" ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
    const head = [`${method} ${target} HTTP/1.1`, `Host: ${this.host}`, ...length, ...headers, "", ""];
    this.socket.write(head.join("\r\n") + body);
  }

  async read(method: string): Promise<RawAnswer> {
    await this.until(() => this.received.includes("\r\n\r\n"));
    const at = this.received.indexOf("\r\n\r\n");
    const [first = "", ...lines] = this.received.subarray(0, at).toString("latin1").split("\r\n");
    this.received = this.received.subarray(at + 4);
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    const status = Number(first.split(" ")[1]);
    const bodiless = method === "HEAD" || status === 204 || status === 304;
    const chunked = headers["transfer-encoding"] === "chunked";
    if (bodiless || !chunked) {
      const body = await this.take(bodiless ? 0 : Number(headers["content-length"] ?? 0));
      return { status, headers, body };
    }
    const pieces: Buffer[] = [];
    for (;;) {
      await this.until(() => this.received.includes("\r\n"));
      const line = await this.take(this.received.indexOf("\r\n") + 2);
      const piece = await this.take(Number.parseInt(line.toString("latin1"), 16) + 2);
      if (piece.length === 2) return { status, headers, body: Buffer.concat(pieces) };
      pieces.push(piece.subarray(0, -2));
    }
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  private async take(length: number): Promise<Buffer> {
    await this.until(() => this.received.length >= length);
    const bytes = Buffer.from(this.received.subarray(0, length));
    this.received = this.received.subarray(length);
    return bytes;
  }

  private async until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.ended) throw new Error("the server has closed the connection");
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }
}
