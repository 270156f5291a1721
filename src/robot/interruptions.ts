/**
 * What may end a request before its work is done: the time for its chunk, its robot's own deadline, its client leaving, the shutdown of
 * the service.
 */
import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

interface World {
  readonly clock: Clock;
  /** From now to the answer, milliseconds, as the service allows it. */
  readonly chunkMs: number;
  /** The robot's own, where it has one. */
  readonly deadline?: Deadline | undefined;
  /** Whole seconds after which another try of a request that came too late can succeed. */
  readonly retryAfterSeconds: () => number;
  /** Aborts when the client has left. */
  readonly client: AbortSignal;
  /** Aborts when the service shuts down and must answer every waiting request. */
  readonly service: AbortSignal;
  /** Told at once when the client has left and the request goes on. */
  readonly goesOn?: (() => void) | undefined;
}

export class Interruptions {
  /** Called when the client has left; returns whether that ends the request. */
  onLeave: () => boolean = () => true;
  private readonly late = Promise.withResolvers<"late">();
  private readonly over = Promise.withResolvers<"over">();
  private readonly left = Promise.withResolvers<"left">();
  private readonly endMs: number;
  /** The robot's, while it may end the request: it comes before the service's. */
  private deadline: Deadline | undefined;
  private isLate = false;
  private disarmClock: () => void;
  private readonly end = () => this.over.resolve("over");
  private readonly leave = () => {
    if (this.onLeave()) this.left.resolve("left");
    else this.world.goesOn?.();
  };

  constructor(private readonly world: World) {
    const { clock, chunkMs, deadline, client, service } = world;
    this.endMs = clock.monotonicMs() + chunkMs;
    const leftMs = deadline?.leftMs ?? chunkMs;
    if (leftMs < chunkMs) this.deadline = deadline;
    this.disarmClock = this.arm(Math.min(chunkMs, leftMs));
    client.addEventListener("abort", this.leave);
    service.addEventListener("abort", this.end);
    if (service.aborted) this.end();
  }

  /** Until the earliest of its ends, milliseconds; 0 or less once it has passed. */
  get leftMs(): number {
    return this.deadline?.leftMs ?? this.endMs - this.world.clock.monotonicMs();
  }

  /** The robot's own deadline has ended the request. */
  get missed(): boolean {
    return this.isLate && this.deadline !== undefined;
  }

  /**
   * The outcome of `work`, or the interruption that comes first. `unfinished`: the failure at the deadline or
   * the shutdown when `work` goes on regardless, so that its outcome is not known.
   */
  async race<T>(work: Promise<T>, unfinished?: () => Failure): Promise<T | Failure> {
    if (this.world.client.aborted) this.leave();
    const done = work.then((value) => ({ value }));
    const first = await Promise.race([done, this.late.promise, this.left.promise, this.over.promise]);
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
    if (this.deadline === undefined) return undefined;
    if (this.isLate) return this.stopped();
    this.disarmClock();
    this.deadline = undefined;
    this.disarmClock = this.arm(this.endMs - this.world.clock.monotonicMs());
    return undefined;
  }

  disarm(): void {
    this.disarmClock();
    this.world.client.removeEventListener("abort", this.leave);
    this.world.service.removeEventListener("abort", this.end);
  }

  /** The failure of a request whose time is over. */
  stopped(): Failure {
    const retryAfterSeconds = this.world.retryAfterSeconds();
    if (this.deadline) return this.deadline.missed(retryAfterSeconds);
    const message = `the chunk was not ready within ${this.world.chunkMs / 1000} s and was stopped; retry with backoff`;
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds });
  }

  private arm(ms: number): () => void {
    return this.world.clock.after(Math.max(0, ms), () => {
      this.isLate = true;
      this.late.resolve("late");
    });
  }
}

export function shuttingDown(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the service is shutting down; try again in some seconds");
}

/**
 * A robot's own deadline (`deadline_ms`), from the observation's arrival. After it the chunk is worthless: it is taken back,
 * unless its record is being made durable, and not charged.
 */
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
