/**
 * A run's log, read where it is looked at. Every line stands alone and has its time, and times ascend: so the line of a moment
 * is found by binary search over bytes, and an overview is made of lines at even distances. A log of tens of megabytes costs
 * the few pages that were looked at.
 */
import { type Head, headOf, LogProblem, type Observation, observationOf } from "./log-lines.ts";
import { PAGE_BYTES, PagedFile, type ReadRange } from "./paged-file.ts";

/** A span of the log up to this size is read whole; of a longer one, lines at even distances. */
export const WHOLE_BYTES_MAX = 2 * 1024 * 1024;
const LINE_BYTES_MAX = 1024 * 1024;
/** Lines of a span that is not read whole. */
const SAMPLES = 256;
const SAMPLES_AT_ONCE = 4;
/** Before a line is searched for further off. */
const LINES_WALKED = 2;
/** Read at once where a line is looked for: the rest of one, and two more. */
const LINES_PROBED = 3;
const LINES_KEPT = 4096;
/** A chunk may start some observations after the one that asked for it. */
const LINES_BACK = 8;
/** A log with more is not searched on for one that is right. */
const BROKEN_MAX = 1000;
const NEWLINE = 10;

/** A stretch of the run: all its observations in order, or some of them. */
export interface Stretch {
  readonly lines: readonly Observation[];
  readonly whole: boolean;
}

interface Found {
  readonly line: Observation | undefined;
  /** Where the next line begins. */
  readonly end: number;
}

export class RunLog {
  readonly #parsed = new Map<number, Found>();
  /** Lines that are no observations, among those that were read. */
  readonly #broken = new Set<number>();
  /** The longest line that was read. */
  #lineBytes = 0;
  /** Over when no single line is looked for: those of an overview can wait. */
  #urgent: Promise<void> = Promise.resolve();

  private constructor(
    private readonly file: PagedFile,
    readonly head: Head,
    /** Where the first observation begins. */
    private readonly begin: number,
  ) {}

  static async open(size: number, read: ReadRange): Promise<RunLog> {
    const file = new PagedFile(size, read);
    // The end is asked for with the head: it says how long the run is.
    await Promise.all([file.bytes(0, PAGE_BYTES), file.bytes(size - PAGE_BYTES, size)]);
    const end = await newlineFrom(file, 0);
    if (end === undefined) throw new LogProblem("it has no whole line");
    const head = headOf(textOf(await file.bytes(0, end)));
    return new RunLog(file, head, end + 1);
  }

  get broken(): number {
    return this.#broken.size;
  }

  /** The last observation of the run. */
  async last(): Promise<Observation | undefined> {
    return await this.#before(this.file.size);
  }

  /** The last observation at or before `t`; before the first one, that one. */
  async at(t: number): Promise<Observation | undefined> {
    const found = this.#search(t);
    const over = found.then(
      () => {},
      () => {},
    );
    this.#urgent = over;
    return await found;
  }

  async #search(t: number): Promise<Observation | undefined> {
    const around = this.#around(t);
    let low = around.low ?? (await this.#from(this.begin, this.file.size));
    let { high, highSeconds } = around;
    if (low === undefined || low.t > t) return low;
    // Most logs have lines of one length at one rate: where a line should be it mostly is. The halves are for all others.
    for (let guesses = true; ; guesses = !guesses) {
      for (let count = 0; count < LINES_WALKED || high - low.offset <= PAGE_BYTES; count += 1) {
        const next = await this.after(low);
        if (next === undefined || next.t > t) return low;
        low = next;
      }
      const share = highSeconds === undefined || !guesses ? 0.5 : (t - low.t) / (highSeconds - low.t);
      const aim = low.offset + Math.floor(share * (high - low.offset)) - (guesses ? this.#lineBytes * 1.5 : 0);
      const place = Math.max(low.offset + 1, Math.floor(aim));
      const found = await this.#from(place, high);
      if (found !== undefined && found.t <= t) low = found;
      else [high, highSeconds] = [place, found?.t ?? highSeconds];
    }
  }

  /** What is known of where the line of `t` is, from the lines that were read. */
  #around(t: number): { low: Observation | undefined; high: number; highSeconds: number | undefined } {
    let low: Observation | undefined;
    let above: Observation | undefined;
    for (const { line } of this.#parsed.values()) {
      if (line === undefined) continue;
      if (line.t > t) above = above === undefined || line.offset < above.offset ? line : above;
      else if (low === undefined || line.offset > low.offset) low = line;
    }
    const [high, highSeconds] = [above?.offset ?? this.file.size, above?.t];
    // Times that do not ascend: nothing is known.
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
   * The observations between two moments, and the ones at either side. Those of a long span come as they are read, evenly
   * spread at any time, to `show`.
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
    const places = evenly(SAMPLES).map((share) => start + Math.floor(share * (end - start)));
    for (let at = 0; at < places.length && still(); at += SAMPLES_AT_ONCE) {
      await this.#urgent;
      const some = await Promise.all(places.slice(at, at + SAMPLES_AT_ONCE).map((place) => this.#from(place, end)));
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

  /** The first observation whose line begins at or after `place` and before `limit`. */
  async #from(place: number, limit: number): Promise<Observation | undefined> {
    let start = this.begin;
    if (place > this.begin) {
      await this.file.bytes(place - 1, Math.min(place + LINES_PROBED * this.#lineBytes, limit));
      const newline = await newlineFrom(this.file, place - 1);
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
      const place = Math.max(this.begin, limit - back);
      for (let next = await this.#from(place, limit); next !== undefined; ) {
        best = next;
        const found = await this.#line(next.offset);
        next = found === undefined ? undefined : await this.#from(found.end, limit);
      }
      if (place === this.begin || back > LINE_BYTES_MAX) break;
    }
    return best;
  }

  /** The line that begins at `start`; undefined at the end of the log. A line without an end was cut off. */
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

/** Where the first line end at or after `place` is. */
async function newlineFrom(file: PagedFile, place: number): Promise<number | undefined> {
  for (let start = place; start < file.size; ) {
    const end = (Math.floor(start / PAGE_BYTES) + 1) * PAGE_BYTES;
    const found = (await file.bytes(start, end)).indexOf(NEWLINE);
    if (found >= 0) return start + found;
    if (end - place > LINE_BYTES_MAX) throw new LogProblem("it has a line of over 1 MiB");
    start = end;
  }
  return undefined;
}

/** Shares of a whole, 0 first, such that after any number of them they are spread almost evenly. `count`: a power of two. */
export function evenly(count: number): number[] {
  const shares = [0];
  for (let step = 0.5; shares.length < count; step /= 2) shares.push(...shares.map((share) => share + step));
  return shares;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
