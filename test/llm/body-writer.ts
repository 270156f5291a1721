/** Writes the head and the body of one HTTP answer, framed and cut up as the script says. */
import { STATUS_CODES } from "node:http";
import type { Connection } from "./connection.ts";
import type { Delivery } from "./script.ts";

type Headers = Readonly<Record<string, string>>;

/** What stands between the pieces of a body: nothing (its length was said, or its end is the connection's), or chunk sizes. */
type Framing = "plain" | "chunked";

export class BodyWriter {
  private constructor(
    private readonly connection: Connection,
    private readonly framing: Framing,
    private readonly split: boolean,
  ) {}

  /** Sends the head. Unless it names a length or a coding, the body is chunked, or lasts until the end. */
  static async begin(
    connection: Connection,
    status: number,
    headers: Headers,
    delivery: Delivery = {},
  ): Promise<BodyWriter> {
    const names = Object.keys(headers).map((name) => name.toLowerCase());
    const framed = names.includes("content-length") || names.includes("transfer-encoding");
    const framing = framed || delivery.framing === "until_close" ? "plain" : "chunked";
    const keep = delivery.connection !== "close" && delivery.framing !== "until_close";
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Scripted"}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ...(framing === "chunked" ? ["transfer-encoding: chunked"] : []),
      ...(names.includes("connection") ? [] : keep ? ["connection: keep-alive"] : ["connection: close"]),
    ];
    await connection.write(`${lines.join("\r\n")}\r\n\r\n`);
    return new BodyWriter(connection, framing, delivery.split === "bytes");
  }

  /** One write, or one for each byte. */
  async write(piece: string | Uint8Array): Promise<void> {
    const bytes = Buffer.from(piece as string);
    if (!this.split) return await this.frame(bytes);
    for (let at = 0; at < bytes.length && !this.connection.isGone; at += 1) {
      // Between, not after: who has read the last byte may leave.
      if (at > 0) await turn();
      await this.frame(bytes.subarray(at, at + 1));
    }
  }

  /** The correct end of the body, where the framing has one. */
  async end(): Promise<void> {
    if (this.framing === "chunked") await this.connection.write("0\r\n\r\n");
  }

  private async frame(bytes: Buffer): Promise<void> {
    // A chunk of no bytes would be the end of the body.
    if (bytes.length === 0) return;
    const size = `${bytes.length.toString(16)}\r\n`;
    await this.connection.write(
      this.framing === "plain" ? bytes : Buffer.concat([Buffer.from(size), bytes, Buffer.from("\r\n")]),
    );
  }
}

/** One turn of the event loop, so that two writes are two segments and a reader in this process sees them apart. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
