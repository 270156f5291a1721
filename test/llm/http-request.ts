/** Reads HTTP/1.1 requests from the bytes of one connection, one after the other. */

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Bytes come in by `push`; `next` gives the next whole request, or undefined once the caller has left. */
export class RequestReader {
  private bytes = Buffer.alloc(0);
  private over = false;
  private wake = () => {};

  push(bytes: Uint8Array): void {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    this.wake();
  }

  end(): void {
    this.over = true;
    this.wake();
  }

  async next(): Promise<HttpRequest | undefined> {
    for (;;) {
      const request = this.take();
      if (request !== undefined || this.over) return request;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      await promise;
    }
  }

  private take(): HttpRequest | undefined {
    const border = this.bytes.indexOf("\r\n\r\n");
    if (border < 0) return undefined;
    const [first = "", ...lines] = this.bytes.toString("latin1", 0, border).split("\r\n");
    const [method = "", path = ""] = first.split(" ");
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const rest = this.bytes.subarray(border + 4);
    const found = headers["transfer-encoding"] === undefined ? counted(rest, headers) : chunked(rest);
    if (found === undefined) return undefined;
    this.bytes = rest.subarray(found.length);
    return { method, path, headers, body: found.body.toString("utf8") };
  }
}

interface Found {
  readonly body: Buffer;
  /** Of its frame, in bytes. */
  readonly length: number;
}

function counted(bytes: Buffer, headers: Record<string, string>): Found | undefined {
  const length = Number(headers["content-length"] ?? 0);
  return bytes.length < length ? undefined : { body: bytes.subarray(0, length), length };
}

function chunked(bytes: Buffer): Found | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    const end = line + 2 + size + 2;
    if (!(bytes.length >= end)) return undefined;
    if (size === 0) return { body: Buffer.concat(parts), length: end };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = end;
  }
}
