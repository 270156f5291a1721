/** A file that is read over HTTP by ranges: pages are kept, and the least recently used ones are dropped. */
import type { ReadRange } from "../../std/mp4-boxes.ts";
import { LogProblem } from "./log-lines.ts";

export const PAGE_BYTES = 16 * 1024;
/** Together they hold a small log completely. */
const PAGES_MAX = 320;

export class PagedFile {
  /** Pages in the order of their use. A page whose read failed is dropped. */
  readonly #pages = new Map<number, Promise<Uint8Array>>();

  constructor(
    readonly size: number,
    private readonly read: ReadRange,
  ) {}

  /** The bytes [start, end), at most to the end of the file. Adjacent missing pages are one request. */
  async bytes(start: number, end: number): Promise<Uint8Array> {
    const from = Math.max(0, start);
    const to = Math.min(end, this.size);
    if (to <= from) return new Uint8Array(0);
    const first = Math.floor(from / PAGE_BYTES);
    const last = Math.floor((to - 1) / PAGE_BYTES);
    const pages = await Promise.all(this.#take(first, last));
    if (pages.length === 1)
      return (pages[0] ?? new Uint8Array(0)).subarray(from - first * PAGE_BYTES, to - first * PAGE_BYTES);
    const joined = new Uint8Array((last - first + 1) * PAGE_BYTES);
    for (const [at, page] of pages.entries()) joined.set(page, at * PAGE_BYTES);
    return joined.subarray(from - first * PAGE_BYTES, to - first * PAGE_BYTES);
  }

  #take(first: number, last: number): Promise<Uint8Array>[] {
    for (let at = first; at <= last; at += 1) {
      if (this.#pages.has(at)) continue;
      let end = at + 1;
      while (end <= last && !this.#pages.has(end)) end += 1;
      this.#ask(at, end);
      at = end;
    }
    const taken: Promise<Uint8Array>[] = [];
    for (let at = first; at <= last; at += 1) {
      const page = this.#pages.get(at) ?? Promise.reject(new Error(`page ${at} was not asked for`));
      this.#pages.delete(at);
      this.#pages.set(at, page);
      taken.push(page);
    }
    for (const old of this.#pages.keys()) {
      if (this.#pages.size <= PAGES_MAX) break;
      this.#pages.delete(old);
    }
    return taken;
  }

  #ask(first: number, end: number): void {
    const start = first * PAGE_BYTES;
    const span = this.read(start, Math.min(end * PAGE_BYTES, this.size));
    for (let at = first; at < end; at += 1) {
      const offset = at * PAGE_BYTES - start;
      // A copy, because a page must not keep the memory of the whole span.
      const page = span.then((bytes) => bytes.slice(offset, offset + PAGE_BYTES));
      page.catch(() => this.#pages.delete(at));
      this.#pages.set(at, page);
    }
  }
}

/** The pause before the one repeat, while the storage is busy. */
const BUSY_MS = 1_000;

export function rangesOf(address: string): ReadRange {
  return async (start, end) => {
    const range = `bytes=${start}-${end - 1}`;
    const ask = () => fetch(address, { headers: { range } }).catch(() => undefined);
    let response = await ask();
    if (response?.status === 503) {
      await new Promise((over) => setTimeout(over, BUSY_MS));
      response = await ask();
    }
    if (response?.status === 404) throw new LogProblem("it is not there any more");
    if (response?.status !== 206) {
      await response?.body?.cancel();
      throw new LogProblem("a part of it could not be read; reload the page to try again");
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length !== end - start) throw new LogProblem("it has another size than the run says");
    return bytes;
  };
}
