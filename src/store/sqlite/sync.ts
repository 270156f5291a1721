/** Syncs of the writer's log: on its own thread where the disk is quick, else beside the next commits. */
import { fdatasync, fdatasyncSync } from "node:fs";
import { systemClock } from "../../std/clock.ts";

/**
 * Quicker syncs, on average, run on the writer's thread: another thread would take as long for the hand-over, and more processor time.
 * A hold need not be durable, and so waits for a quick disk, but for a slow one only a few times.
 */
const QUICK_MS = 0.7;
/** The number of syncs in the moving average; the last one weighs most. */
const AVERAGED = 16;
/** The maximum in the average, so that one stall is forgotten after some syncs. */
const COUNTED_MS_MAX = 20;

interface Disk {
  readonly clock: { monotonicMs(): number };
  /** Syncs before it returns; throws the disk's error. */
  now(log: number): void;
  apart(log: number, done: (error: Error | null) => void): void;
}

const DISK: Disk = { clock: systemClock, now: fdatasyncSync, apart: fdatasync };

export class LogSync {
  /** The average of the last syncs; a new log begins as on a slow disk. */
  private averageMs = 2 * QUICK_MS;

  constructor(private readonly disk = DISK) {}

  /** `done` is called before this returns where the disk is quick. */
  sync(log: number, done: (error: Error | null) => void): void {
    const { clock } = this.disk;
    const begunMs = clock.monotonicMs();
    const ended = (error: Error | null) => {
      const ms = Math.min(clock.monotonicMs() - begunMs, COUNTED_MS_MAX);
      this.averageMs += (ms - this.averageMs) / AVERAGED;
      done(error);
    };
    if (this.averageMs < QUICK_MS) ended(this.now(log));
    else this.disk.apart(log, ended);
  }

  private now(log: number): Error | null {
    try {
      this.disk.now(log);
      return null;
    } catch (error) {
      return error as Error;
    }
  }
}
