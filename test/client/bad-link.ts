/** A connection to a service that fails on purpose: it cuts, damages, answers in the service's place, or is gone. */
import type { Socket } from "node:net";
import { BrokenProxy } from "../broken-proxy.ts";

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

export class BadLink extends BrokenProxy {
  /** Heads of the requests, in their order. */
  readonly heads: string[] = [];
  /** Called with each request line, before the request passes. */
  onRequest: (line: string) => void = () => {};
  private armed: Armed[] = [];

  static async to(url: string): Promise<BadLink> {
    const { port, hostname } = new URL(url);
    return await new BadLink(Number(port), hostname).listen();
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The next request whose line begins so meets the fault, once. */
  next(match: string, fault: Fault): void {
    this.armed.push({ match, fault });
  }

  /** Lines of the requests that begin so, and forgets all of them. */
  take(match: string): string[] {
    const found = this.heads.filter((head) => head.startsWith(match)).map((head) => head.split(" HTTP/")[0] ?? "");
    this.heads.length = 0;
    return found;
  }

  protected wire(client: Socket, upstream: Socket): void {
    let struck: Struck | undefined;
    client.on("data", (bytes: Buffer) => {
      struck = this.newRequest(bytes) ?? struck;
      if (struck === undefined) upstream.write(bytes);
      else up(struck, bytes, client, upstream);
      if (this.isCut) client.destroy();
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
