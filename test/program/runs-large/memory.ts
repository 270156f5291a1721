/** The resident memory of a service over its lives, from /proc. */
import { readFile } from "node:fs/promises";

const EVERY_MS = 50;

export class Memory implements Disposable {
  /** Bytes: of all samples the greatest. */
  sampled = 0;
  /** What Linux itself has kept as the greatest, the start of the process included. */
  greatest = 0;
  private readonly timer: Timer;

  /** `pid`: of the process that lives at the moment. */
  constructor(private readonly pid: () => number) {
    this.timer = setInterval(() => this.sample(), EVERY_MS);
  }

  /** Bytes at the moment; 0: the process has gone. */
  async sample(): Promise<number> {
    const status = await readFile(`/proc/${this.pid()}/status`, "utf8").catch(() => "");
    const resident = kibOf(status, "VmRSS");
    this.sampled = Math.max(this.sampled, resident);
    this.greatest = Math.max(this.greatest, kibOf(status, "VmHWM"));
    return resident;
  }

  [Symbol.dispose](): void {
    clearInterval(this.timer);
  }
}

function kibOf(status: string, field: string): number {
  return 1024 * Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
}
