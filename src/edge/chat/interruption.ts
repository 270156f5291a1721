/** What may end a request before its work is done: its deadline, and its client's leaving. */
import { Failure } from "../../error.ts";
import type { Clock } from "../../std/clock.ts";

export class Interruptions {
  /** Asked when the client has left: whether that ends the request now. */
  onLeave: () => boolean = () => true;
  private readonly late = Promise.withResolvers<"late">();
  private readonly left = Promise.withResolvers<"left">();
  private readonly disarmClock: () => void;
  private readonly leave = () => {
    if (this.onLeave()) this.left.resolve("left");
  };

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
    private readonly signal: AbortSignal,
  ) {
    this.disarmClock = clock.after(ms, () => this.late.resolve("late"));
    signal.addEventListener("abort", this.leave);
  }

  /** The outcome of `work`, or the failure that comes first. `onLate` says it in other words than "stopped". */
  async race<T>(work: Promise<T>, onLate = () => this.stopped()): Promise<T | Failure> {
    if (this.signal.aborted) this.leave();
    const first = await Promise.race([work.then((value) => ({ value })), this.late.promise, this.left.promise]);
    if (first === "late") return onLate();
    if (first === "left") return new Failure("engine_unavailable", "the client left before the model started");
    return first.value;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((done) => void this.clock.after(ms, done));
  }

  disarm(): void {
    this.disarmClock();
    this.signal.removeEventListener("abort", this.leave);
  }

  private stopped(): Failure {
    const message = `the chunk was not ready within ${this.ms / 1000} s and was stopped; retry with backoff`;
    return new Failure("engine_unavailable", message, { retryAfterSeconds: 1 });
  }
}
