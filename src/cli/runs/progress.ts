/** How far a push or a pull is: one line that is drawn again and again on a terminal; elsewhere a line every few seconds. */
import type { Watcher } from "../../client/runs/watcher.ts";
import type { Clock } from "../../std/clock.ts";
import { printable } from "../../std/printable.ts";
import type { Problem } from "../../std/problem.ts";
import { bytesText, filesText, spanText } from "./amounts.ts";

export interface ProgressOptions {
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** Columns of the terminal; undefined when it is none: no escape codes then. */
  readonly columns: number | undefined;
}

const DRAW_MS = 200;
const LINE_MS = 5_000;
/** The rate is that of the last while: a link in the field changes. */
const RATE_MS = 10_000;
/** So that the whole line fits into 80 columns. */
const BAR_CELLS = 14;
/** A pause is shown when nothing else has moved for this long. */
const QUIET_MS = 600;
const CLEAR_LINE = "\r\u001b[K";

export class Progress implements Watcher {
  private all = { files: 0, bytes: 0 };
  private done = { files: 0, bytes: 0 };
  private movedBytes = 0;
  private movedMs = Number.NEGATIVE_INFINITY;
  /** Bytes that had moved at the last moments of drawing. */
  private samples: { readonly ms: number; readonly bytes: number }[] = [];
  private hold: { readonly why: string; readonly untilMs: number } | undefined;
  private stopTurns: () => void = () => {};
  private drawn = false;

  constructor(private readonly options: ProgressOptions) {}

  begun(all: { readonly files: number; readonly bytes: number; readonly skipped: readonly string[] }): void {
    this.end();
    if (all.skipped.length > 0) this.say(`skipped, as hidden files are: ${printable(all.skipped.join(", "))}`);
    const { clock, columns } = this.options;
    this.all = { files: all.files, bytes: all.bytes };
    this.done = { files: 0, bytes: 0 };
    this.samples = [{ ms: clock.monotonicMs(), bytes: this.movedBytes }];
    this.stopTurns = clock.every(columns === undefined ? LINE_MS : DRAW_MS, () => this.turn());
  }

  there(bytes: number): void {
    this.done.bytes += bytes;
  }

  moved(bytes: number): void {
    this.done.bytes += bytes;
    this.movedBytes += bytes;
    if (bytes > 0) this.movedMs = this.options.clock.monotonicMs();
  }

  fileDone(): void {
    this.done.files += 1;
  }

  waiting(why: Problem, ms: number): void {
    this.hold = { why: why.message, untilMs: this.options.clock.monotonicMs() + ms };
  }

  /** Takes the line away. */
  end(): void {
    this.stopTurns();
    if (this.drawn) this.options.write(CLEAR_LINE);
    this.drawn = false;
  }

  private turn(): void {
    const { clock, columns, write } = this.options;
    const ms = clock.monotonicMs();
    this.samples.push({ ms, bytes: this.movedBytes });
    // One sample of before the span stays, so that the whole span is covered.
    while ((this.samples[1]?.ms ?? ms) <= ms - RATE_MS) this.samples.shift();
    if (columns === undefined) {
      this.say(this.line(ms));
      return;
    }
    write(CLEAR_LINE + this.line(ms).slice(0, Math.max(1, columns - 1)));
    this.drawn = true;
  }

  private say(text: string): void {
    this.options.write(`${text}\n`);
  }

  private line(ms: number): string {
    const { all, done, hold } = this;
    const share = all.bytes === 0 ? 1 : Math.min(1, Math.max(0, done.bytes / all.bytes));
    const parts = [
      `${bar(share)} ${String(Math.floor(100 * share)).padStart(3)} %`,
      `${bytesText(Math.max(0, done.bytes))} of ${bytesText(all.bytes)}`,
    ];
    const rate = this.bytesPerSecond(ms);
    const stands = hold !== undefined && hold.untilMs > ms && ms - this.movedMs >= QUIET_MS;
    if (stands) parts.push(`again in ${spanText((hold.untilMs - ms) / 1000)}: ${printable(hold.why)}`);
    else if (rate > 0) {
      parts.push(`${bytesText(Math.round(rate))}/s`, `${spanText((all.bytes - done.bytes) / rate)} left`);
    }
    return [...parts, `${done.files} of ${filesText(all.files)}`].join("  ");
  }

  private bytesPerSecond(ms: number): number {
    const first = this.samples[0];
    if (first === undefined || ms <= first.ms) return 0;
    return Math.max(0, ((this.movedBytes - first.bytes) * 1000) / (ms - first.ms));
  }
}

function bar(share: number): string {
  const full = Math.floor(BAR_CELLS * share);
  return `[${"#".repeat(full)}${"-".repeat(BAR_CELLS - full)}]`;
}

/** For `--json`: nothing is shown. */
export const SILENT: Watcher = {
  begun: () => {},
  there: () => {},
  moved: () => {},
  fileDone: () => {},
  waiting: () => {},
};
