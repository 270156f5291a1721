/** What may end a request before its work is done: its deadline, its client leaving, the shutdown of the service. */
import { Failure } from "../error/core.ts";
import { ROBOT } from "../error/robot.ts";
import type { Clock } from "../std/clock.ts";

export class Interruptions {
  /** Called when the client has left; returns whether that ends the request. */
  onLeave: () => boolean = () => true;
  private readonly late = Promise.withResolvers<"late">();
  private readonly over = Promise.withResolvers<"over">();
  private readonly left = Promise.withResolvers<"left">();
  private readonly disarmClock: () => void;
  private readonly end = () => this.over.resolve("over");
  private readonly leave = () => {
    if (this.onLeave()) this.left.resolve("left");
    else this.goesOn?.();
  };

  constructor(
    clock: Clock,
    private readonly ms: number,
    private readonly signal: AbortSignal,
    /** Aborts when the service shuts down and must answer every waiting request. */
    private readonly service: AbortSignal,
    /** Told at once when the client has left and the request goes on. */
    private readonly goesOn?: () => void,
  ) {
    this.disarmClock = clock.after(ms, () => this.late.resolve("late"));
    signal.addEventListener("abort", this.leave);
    service.addEventListener("abort", this.end);
    if (service.aborted) this.end();
  }

  /**
   * The outcome of `work`, or the interruption that comes first. `unfinished`: the failure at the deadline or
   * the shutdown when `work` goes on regardless, so that its outcome is not known.
   */
  async race<T>(work: Promise<T>, unfinished?: () => Failure): Promise<T | Failure> {
    if (this.signal.aborted) this.leave();
    const done = work.then((value) => ({ value }));
    const first = await Promise.race([done, this.late.promise, this.left.promise, this.over.promise]);
    if (first === "late") return unfinished?.() ?? this.stopped();
    if (first === "over") return unfinished?.() ?? shuttingDown();
    if (first === "left") return new Failure(ROBOT.engine_unavailable, "the client left before the model started");
    return first.value;
  }

  disarm(): void {
    this.disarmClock();
    this.signal.removeEventListener("abort", this.leave);
    this.service.removeEventListener("abort", this.end);
  }

  private stopped(): Failure {
    const message = `the chunk was not ready within ${this.ms / 1000} s and was stopped; retry with backoff`;
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds: 1 });
  }
}

export function shuttingDown(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the service is shutting down; try again in some seconds");
}
