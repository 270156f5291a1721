/** A file that is read by ranges: pages of it, asked for once, the least recently used forgotten. */

/** Reads the bytes from `start` up to `end`, all of them. */
export type ReadRange = (start: number, end: number) => Promise<Uint8Array>;

export const PAGE_BYTES = 16 * 1024;
/** Kept: the whole of a small log and what was read of a large one. */
const PAGES_MAX = 320;

export class PagedFile {
  /** In the order of use. A page that could not be read is not kept. */
  readonly #pages = new Map<number, Promise<Uint8Array>>();

  constructor(
    readonly size: number,
    private readonly read: ReadRange,
  ) {}

  /** The bytes from `start` up to `end`, or up to the end of the file. Pages that are missing side by side are one request. */
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
      // Copied: a small page must not keep a large span alive.
      const page = span.then((bytes) => bytes.slice(offset, offset + PAGE_BYTES));
      page.catch(() => this.#pages.delete(at));
      this.#pages.set(at, page);
    }
  }
}
