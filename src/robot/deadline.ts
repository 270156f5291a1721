/**
 * A robot's own deadline (`deadline_ms`): after it the chunk is worthless, so it is neither made nor charged.
 *
 * It counts from the observation's arrival. Whatever the chunk has come to then is taken back: its place in the queue, its frames, a
 * run that waits or that the model is at. Only a chunk whose record is being made durable is answered all the same.
 */

import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

export class Deadline {
  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly arrivedMs: number,
    /** From the arrival on. */
    private readonly ms: number,
  ) {}

  /** Milliseconds from now; 0 or less once it has passed. */
  get leftMs(): number {
    return this.arrivedMs + this.ms - this.clock.monotonicMs();
  }

  missed(retryAfterSeconds: number): Failure {
    const message =
      `the chunk was not ready within its deadline_ms of ${this.ms} and was taken back; nothing was charged: ` +
      "ask with a fresh observation, or with a longer deadline_ms";
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds });
  }
}
