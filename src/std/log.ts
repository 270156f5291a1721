/** One line per event to standard error: text, or JSON with `--json`. Facts are small; never keys, bodies or images. */
import type { Clock } from "./clock.ts";

type Facts = Readonly<Record<string, string | number | boolean>>;

export interface Log {
  /** Worth knowing for an operator. */
  info(event: string, facts?: Facts): void;
  /** An operator must look at it. */
  error(event: string, facts?: Facts): void;
}

export interface LogOptions {
  readonly clock: Clock;
  readonly json: boolean;
  /** Receives whole lines, without the line end. */
  readonly write: (line: string) => void;
}

export function makeLog(options: LogOptions): Log {
  const put = (level: "info" | "error", event: string, facts: Facts) => {
    const time = new Date(options.clock.unixMs()).toISOString();
    if (options.json) return options.write(JSON.stringify({ time, level, event, ...facts }));
    const pairs = Object.entries(facts).map(([name, value]) => ` ${name}=${plain(value)}`);
    options.write(`${time} ${level} ${event}${pairs.join("")}`);
  };
  return {
    info: (event, facts = {}) => put("info", event, facts),
    error: (event, facts = {}) => put("error", event, facts),
  };
}

/** Quoted if it is not a single printable word, so that an event always is one line. */
function plain(value: string | number | boolean): string {
  const text = String(value);
  return /^[^\s"=\p{C}]+$/u.test(text) ? text : JSON.stringify(text);
}

/** What the log has of a bug. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Standard error, one line at a time. */
export function standardError(line: string): void {
  process.stderr.write(`${line}\n`);
}
