/**
 * JSON bodies over the native library: checked on native threads, so that none holds the event loop. It needs no engine and no
 * model; the library is opened with the first body.
 */
import { BodyResult, BodyRules, STATUS } from "../engine/abi.ts";
import { type Calls, Completions, type Handle, handleOf } from "../engine/binding.ts";
import { openLibrary } from "../engine/library.ts";
import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { pause } from "../std/slices.ts";
import { ScannedBody } from "./scanned-body.ts";

/** `texts`: every string can be read. `images`: data URLs of JPEGs are decoded, and few of the long strings will be read. */
export type BodyUse = "texts" | "images";

/** The bytes of one copy to native memory. */
const PIECE_BYTES = 256 * 1024;

/** What is wrong with a body. `closed`: it cannot be scanned, now or at all. */
export type BodyFault = "syntax" | "depth" | "values" | "closed";

/** A body as it came. */
export interface SentBody {
  /** They are taken out, in their order, when the library is open. */
  readonly parts: Uint8Array[];
  /** The bytes of all parts. */
  readonly length: number;
  readonly turn: number;
  readonly spent?: (ms: number) => void;
}

interface Threads {
  readonly calls: Calls;
  readonly handle: Handle;
  readonly completions: Completions;
}

export class Bodies {
  private opening: Promise<Threads | Problem> | undefined;
  private closed = false;
  private readonly waiting = new Map<number, (status: number) => void>();
  private readonly rules = new DataView(new ArrayBuffer(BodyRules.size));
  private readonly found = new DataView(new ArrayBuffer(BodyResult.size));

  /** Bodies of different turns alternate. `spent` gets the milliseconds of the scan. */
  async scan({ parts, length, turn, spent }: SentBody, use: BodyUse): Promise<ScannedBody | BodyFault> {
    const open = await this.open();
    if (open instanceof Problem || this.closed) return "closed";
    const { calls, handle } = open;
    const body = calls.tendon_body_make(handle, length);
    if (body === STATUS.busy) return "closed";
    const free = () => {
      // Closing has freed it.
      if (!this.closed) expectOk(calls.tendon_body_free(handle, body), "free");
    };
    // Taken out: a request may wait for long, and its bytes should be in memory once.
    let copied = 0;
    for (const piece of pieces(parts.splice(0))) {
      expectOk(calls.tendon_body_write(handle, body, piece, piece.length), "write");
      copied += piece.length;
      if (copied < PIECE_BYTES) continue;
      copied = 0;
      // Copying megabytes takes milliseconds, which others would wait for.
      await pause();
      if (this.closed) return "closed";
    }
    this.setRules(length, use);
    const ended = new Promise<number>((done) => this.waiting.set(body, done));
    expectOk(calls.tendon_body_scan(handle, body, turn, new Uint8Array(this.rules.buffer)), "scan");
    const status = await ended;
    if (status === STATUS.cancelled) return "closed";
    expectOk(calls.tendon_body_result(handle, body, new Uint8Array(this.found.buffer)), "found");
    spent?.(this.found.getUint32(BodyResult.scan_us, true) / 1000);
    if (status !== STATUS.ok) {
      free();
      return faultOf(status);
    }
    return new ScannedBody(this.found, free);
  }

  /** What is queued is scanned before; bodies that were not read yet are gone. */
  async close(): Promise<void> {
    this.closed = true;
    const open = await this.opening;
    if (open === undefined || open instanceof Problem) return;
    expectOk(open.calls.tendon_bodies_close(open.handle), "close");
    await open.completions.close();
  }

  /** Opens the library, where no body has yet. */
  open(): Promise<Threads | Problem> {
    this.opening ??= this.openNow();
    return this.opening;
  }

  private async openNow(): Promise<Threads | Problem> {
    const calls = await openLibrary();
    if (calls instanceof Problem) return calls;
    const completions = new Completions("u32", (body, status) => this.complete(body, status));
    const handle = handleOf((out) => calls.tendon_bodies_open(completions.address, out));
    if (handle === undefined) return new Problem("the threads that read large requests cannot be started");
    return { calls, handle, completions };
  }

  private complete(body: number, status: number): void {
    const done = present(this.waiting.get(body), "who waits for a body");
    this.waiting.delete(body);
    done(this.closed ? STATUS.cancelled : status);
  }

  private setRules(length: number, use: BodyUse): void {
    const set = (offset: number, value: number) => this.rules.setUint32(offset, value, true);
    const stringBytesMax = LIMITS.scannedStringBytesMax[use];
    // The parser is faster with many short strings of escapes than their placeholders are, as long as these are few bytes in all.
    const keepsEscapes = use === "texts" && length <= LIMITS.escapedBodyBytesMax;
    set(BodyRules.depth_max, LIMITS.jsonDepthMax);
    set(BodyRules.values_max, LIMITS.jsonValuesMax);
    set(BodyRules.string_bytes_max, stringBytesMax);
    set(BodyRules.escaped_bytes_max, keepsEscapes ? stringBytesMax : LIMITS.escapedStringBytesMax);
    set(BodyRules.image_bytes_max, LIMITS.jpegBytesMax);
    set(BodyRules.texts, use === "texts" ? 1 : 0);
  }
}

function* pieces(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += PIECE_BYTES) yield part.subarray(at, at + PIECE_BYTES);
  }
}

function expectOk(status: number, call: string): void {
  if (status !== STATUS.ok) throw new Error(`assertion failed: body_${call}: status ${status}`);
}

function faultOf(status: number): BodyFault {
  const fault = (["syntax", "depth", "values"] as const).find((fault) => STATUS[fault] === status);
  return present(fault, `a fault of a scan, which ${status} is`);
}
