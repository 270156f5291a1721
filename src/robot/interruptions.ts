/** What may end a request early: the time for its chunk, its robot's own deadline, its client leaving, the shutdown of the service. */
import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

interface World {
  readonly clock: Clock;
  /** Milliseconds that the service allows from now to the answer. */
  readonly chunkMs: number;
  /** The observation's arrival, monotonic ms. */
  readonly arrivedMs: number;
  /**
   * The robot's own deadline, milliseconds from the arrival. After it the chunk is worthless: it is taken back and not charged, unless
   * its record is being made durable.
   */
  readonly deadlineMs: number | undefined;
  /** Whole seconds after which another try of a request that came too late can succeed. */
  readonly retryAfterSeconds: () => number;
  /** Aborts when the client has left. */
  readonly client: AbortSignal;
  /** Aborts when the service shuts down and must answer every waiting request. */
  readonly service: AbortSignal;
  /** Called when the client has left and the request goes on. */
  readonly goesOn: (() => void) | undefined;
}

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
    else this.world.goesOn?.();
  };

  constructor(private readonly world: World) {
    const { clock, chunkMs, arrivedMs, deadlineMs = Number.POSITIVE_INFINITY, client, service } = world;
    this.endMs = clock.monotonicMs() + chunkMs;
    if (arrivedMs + deadlineMs < this.endMs) this.robotEndMs = arrivedMs + deadlineMs;
    this.disarmClock = this.arm();
    client.addEventListener("abort", this.leave);
    service.addEventListener("abort", this.end);
    if (service.aborted) this.end();
  }

  /** Milliseconds to the earliest of its ends; 0 or less once it has passed. */
  get leftMs(): number {
    return (this.robotEndMs ?? this.endMs) - this.world.clock.monotonicMs();
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
    if (this.world.client.aborted) this.leave();
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
    this.world.client.removeEventListener("abort", this.leave);
    this.world.service.removeEventListener("abort", this.end);
  }

  /** The failure of a request whose time is over. */
  stopped(): Failure {
    const { chunkMs, deadlineMs, retryAfterSeconds } = this.world;
    const message =
      this.robotEndMs === undefined
        ? `the chunk was not ready within ${chunkMs / 1000} s and was stopped; retry with backoff`
        : `the chunk was not ready within its deadline_ms of ${deadlineMs} and was taken back; nothing was charged: ` +
          "ask with a fresh observation, or with a longer deadline_ms";
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds: retryAfterSeconds() });
  }

  private arm(): () => void {
    return this.world.clock.after(Math.max(0, this.leftMs), () => {
      this.isLate = true;
      this.first.resolve("late");
    });
  }
}

export function shuttingDown(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the service is shutting down; try again in some seconds");
}
