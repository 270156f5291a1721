/** Reads HTTP/1.1 requests from the bytes of one connection, one after the other. Their bodies have a length, as those of `fetch`. */

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
    const end = border + 4 + Number(headers["content-length"] ?? 0);
    if (this.bytes.length < end) return undefined;
    const body = this.bytes.toString("utf8", border + 4, end);
    this.bytes = this.bytes.subarray(end);
    return { method, path, headers, body };
  }
}
