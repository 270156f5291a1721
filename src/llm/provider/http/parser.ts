/**
 * The parser of an HTTP/1.1 response (RFC 9112), fed with bytes as they come. Strict: what is ambiguous about where a body ends is
 * malformed, because the next response on the connection would then be read from the wrong place.
 */

export interface Head {
  readonly status: number;
  /** By lower-case names; those of a repeated field are joined with a comma. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface Parsed {
  head(head: Head): void;
  body(piece: Uint8Array): void;
  end(): void;
}

type State = "head" | "length" | "size" | "chunk" | "chunk end" | "trailer" | "until close" | "done";

const HEAD_BYTES_MAX = 65_536;
const LINE_BYTES_MAX = 4_096;
const SIZE_DIGITS_MAX = 8;
const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const SEMICOLON = 0x3b;
const BLANK_LINE = "\r\n\r\n";

export class Parser {
  private state: State = "head";
  /** Of a head or a line that has not come whole. */
  private held: Buffer | undefined;
  /** Bytes of the body, or of the chunk, that are to come. */
  private left = 0;
  private keep = false;
  /** Whether anything has come. */
  begun = false;

  constructor(private readonly to: Parsed) {}

  /** Whether the response has ended, and the connection can have another one. */
  get reusable(): boolean {
    return this.state === "done" && this.keep;
  }

  get ended(): boolean {
    return this.state === "done";
  }

  /** What is malformed about the bytes. */
  feed(piece: Buffer): string | undefined {
    this.begun = true;
    const bytes = this.held ? Buffer.concat([this.held, piece]) : piece;
    this.held = undefined;
    for (let at = 0; at < bytes.length; ) {
      const next = this.step(bytes, at);
      if (typeof next === "string") return next;
      if (next === at) {
        // A head or a line is not whole yet. It is a copy, since what it is a part of may be large.
        this.held = Buffer.from(bytes.subarray(at));
        return undefined;
      }
      at = next;
    }
    return undefined;
  }

  /** The connection has ended: whether the response was whole. */
  close(): boolean {
    if (this.state !== "until close") return this.state === "done";
    this.state = "done";
    this.to.end();
    return true;
  }

  /** Where the next step goes on; where it was: it needs more; a text: the bytes are malformed. */
  private step(bytes: Buffer, at: number): number | string {
    if (this.state === "head") return this.readHead(bytes, at);
    if (this.state === "length" || this.state === "chunk") return this.readBody(bytes, at);
    if (this.state === "until close") {
      this.to.body(at === 0 ? bytes : bytes.subarray(at));
      return bytes.length;
    }
    if (this.state === "done") {
      // Nobody asked for more: the connection is of no use.
      this.keep = false;
      return bytes.length;
    }
    return this.readLine(bytes, at);
  }

  private readBody(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.left, bytes.length);
    this.left -= end - at;
    const ended = this.left === 0;
    if (ended) this.state = this.state === "chunk" ? "chunk end" : "done";
    this.to.body(bytes.subarray(at, end));
    if (this.state === "done") this.to.end();
    return end;
  }

  private readHead(bytes: Buffer, at: number): number | string {
    const end = bytes.indexOf(BLANK_LINE, at);
    if (end < 0) return bytes.length - at > HEAD_BYTES_MAX ? "the head is too long" : at;
    const fault = this.begin(bytes.toString("latin1", at, end).split("\r\n"));
    return fault ?? end + BLANK_LINE.length;
  }

  private begin([line = "", ...fields]: readonly string[]): string | undefined {
    const [, minor, digits = ""] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(line) ?? [];
    const headers = fieldsOf(fields);
    if (minor === undefined || headers === undefined) return "the head is malformed";
    const status = Number(digits);
    // An interim response: the real one follows.
    if (status >= 100 && status < 200) return status === 101 ? "it switches protocols" : undefined;
    const framing = framingOf(status, headers);
    if (framing === undefined) return "the length of the body is malformed";
    const connection = headers.get("connection")?.toLowerCase() ?? "";
    const closes = /(^|,)\s*close\s*(,|$)/.test(connection);
    const keeps = minor === "1" ? !closes : /(^|,)\s*keep-alive\s*(,|$)/.test(connection);
    this.keep = keeps && framing !== "until close" && !(framing === "chunked" && headers.has("content-length"));
    this.left = typeof framing === "number" ? framing : 0;
    if (framing === "until close") this.state = framing;
    else if (framing === "chunked") this.state = "size";
    else this.state = framing === 0 ? "done" : "length";
    this.to.head({ status, headers });
    if (framing === 0) this.to.end();
    return undefined;
  }

  /** The lines of a chunked body are short and many, so they are read without making texts of them. */
  private readLine(bytes: Buffer, at: number): number | string {
    const end = bytes.indexOf(LF, at);
    if (end < 0) return bytes.length - at > LINE_BYTES_MAX ? "a line is too long" : at;
    const last = end > at && bytes[end - 1] === CR ? end - 1 : end;
    const fault = this.state === "size" ? this.size(bytes, at, last) : this.border(last === at);
    return fault ?? end + 1;
  }

  /** Hexadecimal digits, and after them perhaps an extension. */
  private size(bytes: Buffer, from: number, to: number): string | undefined {
    let size = 0;
    let at = from;
    for (; at < to; at += 1) {
      const digit = hexDigit(bytes[at] ?? 0);
      if (digit < 0) break;
      size = 16 * size + digit;
    }
    const digits = at - from;
    const next = at < to ? bytes[at] : SEMICOLON;
    const known = next === SEMICOLON || next === SPACE || next === TAB;
    if (digits === 0 || digits > SIZE_DIGITS_MAX || !known) return "the size of a chunk is malformed";
    this.left = size;
    this.state = size === 0 ? "trailer" : "chunk";
    return undefined;
  }

  /** A line behind a chunk, or one of the trailer, which an empty one ends. */
  private border(empty: boolean): string | undefined {
    if (this.state === "chunk end") {
      if (!empty) return "a chunk is longer than its size";
      this.state = "size";
    } else if (empty) {
      this.state = "done";
      this.to.end();
    }
    return undefined;
  }
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** A line that goes on with the one before it begins with a space, so it has no name. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_BREAK = /[\r\n\0]/;

function fieldsOf(lines: readonly string[]): Map<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 0 || !FIELD_NAME.test(line.slice(0, colon)) || FIELD_BREAK.test(line)) return undefined;
    const key = line.slice(0, colon).toLowerCase();
    const value = trimmed(line, colon + 1);
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}

/** By hand: a pattern that trims an end costs the square of the spaces inside. */
function trimmed(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isBlank(line.charCodeAt(start))) start += 1;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end -= 1;
  return line.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** RFC 9112 section 6.3. undefined: it is not certain where the body ends. */
function framingOf(
  status: number,
  headers: ReadonlyMap<string, string>,
): number | "chunked" | "until close" | undefined {
  if (status === 204 || status === 304) return 0;
  const coding = headers.get("transfer-encoding");
  if (coding !== undefined) return coding.toLowerCase() === "chunked" ? "chunked" : undefined;
  const length = headers.get("content-length");
  if (length === undefined) return "until close";
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}
