/**
 * A run's log, of which only the viewed parts are read. Each line is complete by itself and has a time, and times ascend. So the line
 * of a time is found by binary search over bytes, and an overview consists of lines at even distances.
 */
import type { ReadRange } from "../../std/mp4-boxes.ts";
import { type Head, headOf, LogProblem, type Observation, observationOf } from "./log-lines.ts";
import { PAGE_BYTES, PagedFile } from "./paged-file.ts";

/** A span of the log up to this size is read completely; a longer one is sampled at even distances. */
export const WHOLE_BYTES_MAX = 2 * 1024 * 1024;
const LINE_BYTES_MAX = 1024 * 1024;
/** The number of lines that are read of a longer span. */
const SAMPLES = 256;
const SAMPLES_AT_ONCE = 4;
/** The search reads this many adjacent lines before it jumps. */
const LINES_WALKED = 2;
/** The search reads this many lines at once: the rest of one, and two more. */
const LINES_PROBED = 3;
const LINES_KEPT = 4096;
/** A chunk may start several observations after its own. */
const LINES_BACK = 8;
/** A search gives up after this many invalid lines. */
const BROKEN_MAX = 1000;
const NEWLINE = 10;

/** A span of the run: all its observations in order, or a sample of them. */
export interface Stretch {
  readonly lines: readonly Observation[];
  readonly whole: boolean;
}

interface Found {
  readonly line: Observation | undefined;
  /** The offset of the next line. */
  readonly end: number;
}

export class RunLog {
  readonly #parsed = new Map<number, Found>();
  /** The offsets of lines that are not observations. */
  readonly #broken = new Set<number>();
  /** The length of the longest line that was read. */
  #lineBytes = 0;
  /** Resolves when the search for a single line ends. The lines of an overview wait for it. */
  #urgent: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly file: PagedFile,
    readonly head: Head,
    /** The offset of the first observation. */
    private readonly begin: number,
  ) {}

  static async open(size: number, read: ReadRange): Promise<RunLog> {
    const file = new PagedFile(size, read);
    // The end of the log states the length of the run.
    await Promise.all([file.bytes(0, PAGE_BYTES), file.bytes(size - PAGE_BYTES, size)]);
    const end = await newlineFrom(file, 0);
    if (end === undefined) throw new LogProblem("it has no whole line");
    const head = headOf(textOf(await file.bytes(0, end)));
    return new RunLog(file, head, end + 1);
  }

  get broken(): number {
    return this.#broken.size;
  }

  async last(): Promise<Observation | undefined> {
    return await this.#before(this.file.size);
  }

  /** The last observation at or before `t`, or else the first one. */
  async at(t: number): Promise<Observation | undefined> {
    const found = this.#search(t);
    this.#urgent = Promise.allSettled([found]);
    return await found;
  }

  async #search(t: number): Promise<Observation | undefined> {
    const around = this.#around(t);
    let low = around.low ?? (await this.#from(this.begin, this.file.size));
    let { high, highSeconds } = around;
    if (low === undefined || low.t > t) return low;
    // Most logs have lines of equal length at a constant rate, so interpolation finds the line. Bisection covers the others.
    for (let guesses = true; ; guesses = !guesses) {
      for (let count = 0; count < LINES_WALKED || high - low.offset <= PAGE_BYTES; count += 1) {
        const next = await this.after(low);
        if (next === undefined || next.t > t) return low;
        low = next;
      }
      const share = highSeconds === undefined || !guesses ? 0.5 : (t - low.t) / (highSeconds - low.t);
      const aim = low.offset + Math.floor(share * (high - low.offset)) - (guesses ? this.#lineBytes * 1.5 : 0);
      const offset = Math.max(low.offset + 1, Math.floor(aim));
      const found = await this.#from(offset, high);
      if (found !== undefined && found.t <= t) low = found;
      else [high, highSeconds] = [offset, found?.t ?? highSeconds];
    }
  }

  /** The bounds of the line of `t` that follow from the lines that were read. */
  #around(t: number): { low: Observation | undefined; high: number; highSeconds: number | undefined } {
    let low: Observation | undefined;
    let above: Observation | undefined;
    for (const { line } of this.#parsed.values()) {
      if (line === undefined) continue;
      if (line.t > t) above = above === undefined || line.offset < above.offset ? line : above;
      else if (low === undefined || line.offset > low.offset) low = line;
    }
    const [high, highSeconds] = [above?.offset ?? this.file.size, above?.t];
    // Bounds in the wrong order come from times that do not ascend.
    const sorted = low === undefined || low.offset < high;
    return sorted ? { low, high, highSeconds } : { low: undefined, high: this.file.size, highSeconds: undefined };
  }

  async after({ offset }: Observation): Promise<Observation | undefined> {
    const found = await this.#line(offset);
    return found === undefined ? undefined : await this.#from(found.end, this.file.size);
  }

  async before({ offset }: Observation): Promise<Observation | undefined> {
    return await this.#before(offset);
  }

  /** The observation and those before it whose chunks may still be due at `t`, in order. */
  async leadingTo(one: Observation, t: number): Promise<Observation[]> {
    const lines = [one];
    while (lines.length <= LINES_BACK) {
      const [first] = lines;
      if (first === undefined || (first.chunk !== undefined && first.chunk.start <= t)) break;
      const earlier = await this.#before(first.offset);
      if (earlier === undefined) break;
      lines.unshift(earlier);
    }
    return lines;
  }

  /**
   * The observations between two times, and one on each side. Those of a long span are shown as they are read, and are evenly spread
   * from the first call of `show` on.
   */
  async between(from: number, to: number, show: (stretch: Stretch) => void, still: () => boolean): Promise<void> {
    const first = await this.at(from);
    const last = await this.at(to);
    if (first === undefined || last === undefined) return show({ lines: [], whole: true });
    const [begin] = await this.leadingTo(first, from);
    const start = begin?.offset ?? first.offset;
    const end = (await this.after(last))?.offset ?? this.file.size;
    if (end - start <= WHOLE_BYTES_MAX) return show({ lines: await this.#all(start, end, to), whole: true });
    const lines = new Map<number, Observation>([first, last].map((line) => [line.offset, line]));
    const offsets = evenly(SAMPLES).map((share) => start + Math.floor(share * (end - start)));
    for (let at = 0; at < offsets.length && still(); at += SAMPLES_AT_ONCE) {
      await this.#urgent;
      const some = await Promise.all(offsets.slice(at, at + SAMPLES_AT_ONCE).map((offset) => this.#from(offset, end)));
      for (const line of some) if (line !== undefined) lines.set(line.offset, line);
      if (still()) show({ lines: [...lines.values()].sort((a, b) => a.offset - b.offset), whole: false });
    }
  }

  async #all(start: number, end: number, to: number): Promise<Observation[]> {
    await this.file.bytes(start, end);
    const lines: Observation[] = [];
    for (let at = start; at < this.file.size; ) {
      const found = await this.#line(at);
      if (found === undefined) break;
      if (found.line !== undefined) lines.push(found.line);
      if (found.line !== undefined && found.line.t > to) break;
      at = found.end;
    }
    return lines;
  }

  /** The first observation whose line begins at or after `offset` and before `limit`. */
  async #from(offset: number, limit: number): Promise<Observation | undefined> {
    let start = this.begin;
    if (offset > this.begin) {
      await this.file.bytes(offset - 1, Math.min(offset + LINES_PROBED * this.#lineBytes, limit));
      const newline = await newlineFrom(this.file, offset - 1);
      if (newline === undefined) return undefined;
      start = newline + 1;
    }
    while (start < limit) {
      const found = await this.#line(start);
      if (found === undefined) return undefined;
      if (found.line !== undefined) return found.line;
      start = found.end;
    }
    return undefined;
  }

  /** The last observation whose line begins before `limit`. */
  async #before(limit: number): Promise<Observation | undefined> {
    let best: Observation | undefined;
    for (let back = PAGE_BYTES; best === undefined; back *= 2) {
      const offset = Math.max(this.begin, limit - back);
      for (let next = await this.#from(offset, limit); next !== undefined; ) {
        best = next;
        const found = await this.#line(next.offset);
        next = found === undefined ? undefined : await this.#from(found.end, limit);
      }
      if (offset === this.begin || back > LINE_BYTES_MAX) break;
    }
    return best;
  }

  /** The line that begins at `start`; undefined at the end of the log, and for a last line that was cut off. */
  async #line(start: number): Promise<Found | undefined> {
    const known = this.#parsed.get(start);
    if (known !== undefined) {
      this.#parsed.delete(start);
      this.#parsed.set(start, known);
      return known;
    }
    if (start >= this.file.size) return undefined;
    const end = await newlineFrom(this.file, start);
    if (end === undefined) return undefined;
    this.#lineBytes = Math.max(this.#lineBytes, end - start);
    const line = observationOf(textOf(await this.file.bytes(start, end)), start);
    if (line === undefined && this.#broken.add(start).size > BROKEN_MAX)
      throw new LogProblem(`over ${BROKEN_MAX} of its lines are no observations`);
    const found = { line, end: end + 1 };
    this.#parsed.set(start, found);
    for (const old of this.#parsed.keys()) {
      if (this.#parsed.size <= LINES_KEPT) break;
      this.#parsed.delete(old);
    }
    return found;
  }
}

/** The offset of the first line end at or after `offset`. */
async function newlineFrom(file: PagedFile, offset: number): Promise<number | undefined> {
  for (let start = offset; start < file.size; ) {
    const end = (Math.floor(start / PAGE_BYTES) + 1) * PAGE_BYTES;
    const found = (await file.bytes(start, end)).indexOf(NEWLINE);
    if (found >= 0) return start + found;
    if (end - offset > LINE_BYTES_MAX) throw new LogProblem("it has a line of over 1 MiB");
    start = end;
  }
  return undefined;
}

/** Shares of a whole, such that every beginning of the list is spread almost evenly. `count` is a power of two. */
export function evenly(count: number): number[] {
  const shares = [0];
  for (let step = 0.5; shares.length < count; step /= 2) shares.push(...shares.map((share) => share + step));
  return shares;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
