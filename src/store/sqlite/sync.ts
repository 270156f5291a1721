/** Syncs of the writer's log: on its own thread where the disk is quick, else beside the next commits. */
import { fdatasync, fdatasyncSync } from "node:fs";
import { systemClock } from "../../std/clock.ts";

/**
 * Syncs that take less on average run on the writer's thread: handing one to another thread and back takes as long, and the processor
 * time of two threads. A hold need not be durable. It then waits for a quick disk, and for a slow one only a few times.
 */
const QUICK_MS = 0.7;
/** Syncs in the moving average; the last one weighs most. */
const AVERAGED = 16;
/** A longer one counts as this, so that one stall is forgotten after some syncs. */
const COUNTED_MS_MAX = 20;

interface Disk {
  readonly clock: { monotonicMs(): number };
  /** Waits. Throws what went wrong. */
  now(log: number): void;
  apart(log: number, done: (error: Error | null) => void): void;
}

const DISK: Disk = { clock: systemClock, now: fdatasyncSync, apart: fdatasync };

export class LogSync {
  /** Average of the last syncs; of a new log, as on a slow disk. */
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
