/** A client of run storage with a key: one function for each route. */
import { connect } from "node:net";

/** The fields of all answers. Each answer has some of them. */
interface Body {
  readonly upload_id: string;
  readonly part_size: number;
  readonly expires_at: number;
  readonly completed_at: number;
  readonly stored_bytes: number;
  readonly reserved_bytes: number;
  readonly next: string | null;
  readonly data: readonly { readonly run: string }[];
  readonly month: Readonly<Record<"start" | "uploaded_bytes" | "downloaded_bytes" | "requests", number>>;
  readonly files: readonly { readonly path: string; readonly content_type: string }[];
  readonly error: { readonly code: string; readonly message: string; readonly param?: string; readonly type: string };
}

/** An answer; `said` is short, such as `409 run_completed`. */
export interface Answer {
  readonly status: number;
  readonly said: string;
  /** The message of an error. */
  readonly message?: string | undefined;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** Undefined where the body is not JSON. */
  readonly json: Body;
  /** The same, for a comparison of the whole. */
  readonly body: unknown;
}

export type Bytes = Uint8Array<ArrayBuffer> | string;

export interface ListedFile {
  readonly path: string;
  readonly size?: unknown;
  readonly sha256?: unknown;
}

export function sha256(bytes: Bytes): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** A file as an entry of a list. */
export function fileOf(path: string, bytes: Bytes) {
  return { path, size: Buffer.byteLength(bytes), sha256: sha256(bytes) };
}

/** The route of a run; without a slash it is one of the robot `arm`. */
function runRoute(run: string): string {
  return `/v1/robot/runs/${run.includes("/") ? run : `arm/${run}`}`;
}

const encoded = (path: string) => path.split("/").map(encodeURIComponent).join("/");

export class Person {
  /** What records and manifests count as stored and as reserved. */
  readonly #records: () => Promise<readonly [stored: number, reserved: number]>;

  constructor(
    readonly url: string,
    readonly key: string,
    readonly accountId: string,
    records: () => Promise<readonly [stored: number, reserved: number]>,
  ) {
    this.#records = records;
  }

  /** The same person at another node. */
  at(url: string): Person {
    return new Person(url, this.key, this.accountId, this.#records);
  }

  /** A stream is sent in chunks, without its length. */
  async send(
    method: string,
    path: string,
    body?: Bytes | ReadableStream,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.key}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const bytes = await response.bytes();
    const isJson = response.headers.get("content-type") === "application/json";
    const json = isJson && bytes.length > 0 ? JSON.parse(new TextDecoder().decode(bytes)) : undefined;
    const { status } = response;
    const code = status >= 400 ? ` ${json?.error?.code}` : "";
    const message = json?.error?.message;
    return { status, said: `${status}${code}`, message, headers: response.headers, bytes, json, body: json };
  }

  put(run: string, path: string, body: Bytes, headers?: Record<string, string>): Promise<Answer> {
    return this.send("PUT", `${runRoute(run)}/files/${encoded(path)}`, body, headers);
  }

  get(run: string, path: string, headers?: Record<string, string>): Promise<Answer> {
    return this.send("GET", `${runRoute(run)}/files/${encoded(path)}`, undefined, headers);
  }

  remove(run: string, path: string): Promise<Answer> {
    return this.send("DELETE", `${runRoute(run)}/files/${encoded(path)}`);
  }

  begin(run: string, path: string, facts: { size: unknown; sha256?: unknown }): Promise<Answer> {
    return this.send("POST", `${runRoute(run)}/uploads/${encoded(path)}`, JSON.stringify(facts));
  }

  /** The id of an upload that has begun. */
  async begun(run: string, path: string, facts: { size: number; sha256?: string }): Promise<string> {
    const { json, said } = await this.begin(run, path, facts);
    if (json?.upload_id === undefined) throw new Error(`the upload has not begun: ${said}`);
    return json.upload_id;
  }

  /** The id of an upload of one part, which has come. */
  async sent(run: string, path: string, bytes: Bytes, sha256?: string): Promise<string> {
    const id = await this.begun(run, path, { size: Buffer.byteLength(bytes), ...(sha256 && { sha256 }) });
    const { said } = await this.part(run, path, id, 1, bytes);
    if (said !== "200") throw new Error(`the part is not stored: ${said}`);
    return id;
  }

  part(run: string, path: string, id: string, part: unknown, body: Bytes, headers?: Record<string, string>) {
    return this.send("PUT", `${runRoute(run)}/uploads/${encoded(path)}?upload_id=${id}&part=${part}`, body, headers);
  }

  finish(run: string, path: string, id: string, body?: object): Promise<Answer> {
    const text = body && JSON.stringify(body);
    return this.send("POST", `${runRoute(run)}/uploads/${encoded(path)}?upload_id=${id}`, text);
  }

  abort(run: string, path: string, id: string): Promise<Answer> {
    return this.send("DELETE", `${runRoute(run)}/uploads/${encoded(path)}?upload_id=${id}`);
  }

  uploads(run: string, path: string, id?: string): Promise<Answer> {
    const query = id === undefined ? "" : `?upload_id=${id}`;
    return this.send("GET", `${runRoute(run)}/uploads/${encoded(path)}${query}`);
  }

  complete(run: string, files: readonly ListedFile[], metadata?: unknown): Promise<Answer> {
    const body = { files, ...(metadata === undefined ? {} : { metadata }) };
    return this.send("POST", `${runRoute(run)}/complete`, JSON.stringify(body));
  }

  /** A run with these files, complete. */
  async completed(run: string, files: Readonly<Record<string, Bytes>>): Promise<Answer> {
    for (const [path, bytes] of Object.entries(files)) await this.put(run, path, bytes);
    const listed = Object.entries(files).map(([path, bytes]) => fileOf(path, bytes));
    const answer = await this.complete(run, listed);
    if (answer.status !== 200) throw new Error(`the run is not complete: ${answer.said}`);
    return answer;
  }

  manifest(run: string): Promise<Answer> {
    return this.send("GET", runRoute(run));
  }

  erase(run: string): Promise<Answer> {
    return this.send("DELETE", runRoute(run));
  }

  list(query = ""): Promise<Answer> {
    return this.send("GET", `/v1/robot/runs${query}`);
  }

  usage(): Promise<Answer> {
    return this.send("GET", "/v1/robot/runs/usage");
  }

  /** Stored and reserved bytes of files. */
  async room(): Promise<[stored: number, reserved: number]> {
    const [stored, reserved] = await this.#records();
    const { json } = await this.usage();
    return [json.stored_bytes - stored, json.reserved_bytes - reserved];
  }

  /** A request on a new connection, whose head and first bytes have been sent. */
  half(method: string, path: string, head: readonly string[], first: Bytes = ""): HalfSent {
    const { hostname, port, host } = new URL(this.url);
    const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${this.key}`, ...head, "", ""];
    const socket = connect({ host: hostname, port: Number(port) });
    let text = "";
    const heads = Promise.withResolvers<string>();
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      if (text.includes("\r\n\r\n")) heads.resolve(text);
    });
    socket.on("error", () => heads.resolve(text));
    socket.on("close", () => heads.resolve(text));
    socket.write(lines.join("\r\n"));
    socket.write(first);
    const said = heads.promise.then((all) => {
      const code = /"code":"(\w+)"/.exec(all)?.[1];
      return `${/^HTTP\/1\.1 (\d+)/.exec(all)?.[1]}${code === undefined ? "" : ` ${code}`}`;
    });
    return { write: (bytes) => socket.write(bytes), cut: () => socket.destroy(), end: () => socket.end(), said };
  }

  /** A `PUT` of a file of `size` bytes of which only the first ones have come. */
  halfPut(run: string, path: string, size: number, first: Bytes): HalfSent {
    return this.half("PUT", `${runRoute(run)}/files/${encoded(path)}`, [`Content-Length: ${size}`], first);
  }
}

export interface HalfSent {
  write(bytes: Bytes): void;
  /** The connection breaks. */
  cut(): void;
  end(): void;
  /** Status and code, once the answer begins. */
  readonly said: Promise<string>;
}
