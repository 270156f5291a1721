/** What may end a request early: the time for its chunk, its robot's own deadline, its client leaving, the shutdown of the service. */
import { Failure } from "../std/failure.ts";
import type { Caller, RobotDeps } from "./command.ts";
import { ROBOT } from "./errors.ts";

export class Interruptions {
  /** Called when the client has left; returns whether that ends the request. */
  onLeave: () => boolean = () => true;
  private readonly first = Promise.withResolvers<"late" | "over" | "left">();
  private readonly endMs: number;
  /** The end of the robot's deadline, while it may end the request; undefined where the service's time is shorter. */
  private robotEndMs: number | undefined;
  private isLate = false;
  private disarmClock: () => void;
  private readonly end = () => this.first.resolve("over");
  private readonly leave = () => {
    if (this.onLeave()) this.first.resolve("left");
    else this.caller.goesOn?.();
  };

  /** `retryAfterSeconds`: after which another try of a request that came too late can succeed, whole seconds. */
  constructor(
    private readonly service: Pick<RobotDeps, "clock" | "chunkMs" | "lifecycle">,
    private readonly caller: Pick<Caller, "arrivedMs" | "signal" | "goesOn">,
    private readonly deadlineMs: number | undefined,
    private readonly retryAfterSeconds: () => number,
  ) {
    const { clock, chunkMs, lifecycle } = service;
    const { arrivedMs, signal } = caller;
    this.endMs = clock.monotonicMs() + chunkMs;
    if (deadlineMs !== undefined && arrivedMs + deadlineMs < this.endMs) this.robotEndMs = arrivedMs + deadlineMs;
    this.disarmClock = this.arm();
    signal.addEventListener("abort", this.leave);
    lifecycle.over.addEventListener("abort", this.end);
    if (lifecycle.over.aborted) this.end();
  }

  /** Milliseconds to the earliest of its ends; 0 or less once it has passed. */
  get leftMs(): number {
    return (this.robotEndMs ?? this.endMs) - this.service.clock.monotonicMs();
  }

  /** The robot's own deadline has ended the request. */
  get missed(): boolean {
    return this.isLate && this.robotEndMs !== undefined;
  }

  /**
   * The outcome of `work`, or the interruption that comes first. `unfinished`: the failure at the deadline or
   * the shutdown when `work` goes on regardless, so that its outcome is not known.
   */
  async race<T>(work: Promise<T>, unfinished?: () => Failure): Promise<T | Failure> {
    if (this.caller.signal.aborted) this.leave();
    const done = work.then((value) => ({ value }));
    const first = await Promise.race([done, this.first.promise]);
    if (first === "late") return unfinished?.() ?? this.stopped();
    if (first === "over") return unfinished?.() ?? shuttingDown();
    if (first === "left") return new Failure(ROBOT.engine_unavailable, "the client left before the model started");
    return first.value;
  }

  /**
   * The record of the answer is about to be made durable: from here on the robot's deadline ends nothing, only the service's time does.
   * The failure of a deadline that has passed by now.
   */
  settle(): Failure | undefined {
    if (this.robotEndMs === undefined) return undefined;
    if (this.isLate) return this.stopped();
    this.disarmClock();
    this.robotEndMs = undefined;
    this.disarmClock = this.arm();
    return undefined;
  }

  disarm(): void {
    this.disarmClock();
    this.caller.signal.removeEventListener("abort", this.leave);
    this.service.lifecycle.over.removeEventListener("abort", this.end);
  }

  /** The failure of a request whose time is over. */
  stopped(): Failure {
    const message =
      this.robotEndMs === undefined
        ? `the chunk was not ready within ${this.service.chunkMs / 1000} s and was stopped; retry with backoff`
        : `the chunk was not ready within its deadline_ms of ${this.deadlineMs} and was taken back; nothing was charged: ` +
          "ask with a fresh observation, or with a longer deadline_ms";
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds: this.retryAfterSeconds() });
  }

  private arm(): () => void {
    return this.service.clock.after(Math.max(0, this.leftMs), () => {
      this.isLate = true;
      this.first.resolve("late");
    });
  }
}

export function shuttingDown(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the service is shutting down; try again in some seconds");
}
