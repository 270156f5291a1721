/** How far a push or a pull is: one line that is drawn again and again on a terminal; elsewhere a line every few seconds. */
import type { Watcher } from "../../client/runs/watcher.ts";
import { type Clock, systemClock } from "../../std/clock.ts";
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
/** A pause is shown when nothing else has moved for this long. */
const QUIET_MS = 600;
const CLEAR_LINE = "\r\u001b[K";

export class Progress implements Watcher {
  private all = { files: 0, bytes: 0 };
  private done = { files: 0, bytes: 0 };
  /** The bytes of `done` that were not there before. */
  private movedBytes = 0;
  private movedMs = Number.NEGATIVE_INFINITY;
  private begunMs = 0;
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
    this.movedBytes = 0;
    this.begunMs = clock.monotonicMs();
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
    const { columns, write } = this.options;
    if (columns === undefined) {
      this.say(this.line());
      return;
    }
    write(CLEAR_LINE + this.line().slice(0, Math.max(1, columns - 1)));
    this.drawn = true;
  }

  private say(text: string): void {
    this.options.write(`${text}\n`);
  }

  private line(): string {
    const { all, done, hold, begunMs, movedMs, movedBytes } = this;
    const ms = this.options.clock.monotonicMs();
    const bytes = Math.max(0, done.bytes);
    const share = all.bytes === 0 ? 100 : Math.min(100, Math.floor((100 * bytes) / all.bytes));
    const parts = [`${share} %`, `${bytesText(bytes)} of ${bytesText(all.bytes)}`];
    const rate = (1000 * movedBytes) / (ms - begunMs);
    if (hold !== undefined && hold.untilMs > ms && ms - movedMs >= QUIET_MS) {
      parts.push(`again in ${spanText((hold.untilMs - ms) / 1000)}: ${printable(hold.why)}`);
    } else if (rate > 0) {
      parts.push(`${bytesText(Math.round(rate))}/s`, `${spanText((all.bytes - bytes) / rate)} left`);
    }
    return [...parts, `${done.files} of ${filesText(all.files)}`].join("  ");
  }
}

/** On standard error, or nowhere. */
export function progressOnTerminal(isShown = true): Progress {
  const { stderr } = process;
  const columns = stderr.isTTY ? stderr.columns || 80 : undefined;
  const write = (text: string) => {
    if (isShown) stderr.write(text);
  };
  return new Progress({ clock: systemClock, write, columns });
}
