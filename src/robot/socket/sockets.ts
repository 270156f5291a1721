/** The open WebSockets: their number, their end at a shutdown, and the processor time that no charge pays for. */
import type { Unpaid } from "../../charge/unpaid.ts";
import type { HttpDeps } from "../../http/deps.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import type { Durations } from "../../std/metrics.ts";
import { Permits } from "../../std/quota.ts";
import type { RobotDeps } from "../command.ts";
import { ROBOT } from "../errors.ts";
import type { HalfMessages } from "./half-messages.ts";

export interface RobotSocketDeps extends HttpDeps, RobotDeps {
  readonly sockets: Sockets;
  readonly halves: HalfMessages;
  /** Milliseconds from an observation's arrival to the model's start. */
  readonly starts: { readonly episode: Durations };
  /** A client that sends nothing for this time, not even a pong, is disconnected. */
  readonly silentSeconds: number;
}

export class Sockets {
  private readonly permits = new Permits(LIMITS.socketsMax, LIMITS.accountSocketsMax);
  private readonly open = new Set<{ drain(): void }>();

  /** Open connections. */
  get size(): number {
    return this.permits.size;
  }

  /** Takes a permit for one more connection of the account; call the result to return it. */
  enter(accountId: string): (() => void) | Failure {
    const leave = this.permits.take(accountId);
    if (typeof leave === "function") return leave;
    return new Failure(ROBOT.engine_unavailable, "too many connections are open; close some, or retry with backoff");
  }

  /** Call the result to remove it. */
  add(episode: { drain(): void }): () => boolean {
    this.open.add(episode);
    return () => this.open.delete(episode);
  }

  drain(): void {
    for (const episode of this.open) episode.drain();
  }
}

/** Processor time of a connection's messages since its last answer. A chunk pays for it; a refusal or a replay does not. */
export class Spent {
  private ms = 0;
  private isWorking = false;
  /** The outcome of the current message, which is settled once its whole cost is known. */
  private outcome: "paid" | "unpaid" | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly allowance: Unpaid,
    private readonly accountId: string,
  ) {}

  /** Counts the work on one message. */
  work(message: () => void): void {
    const beginMs = this.clock.monotonicMs();
    this.isWorking = true;
    try {
      message();
    } finally {
      this.isWorking = false;
      this.ms += this.clock.monotonicMs() - beginMs;
      if (this.outcome) this.settle(this.outcome);
    }
  }

  /** `paid`, also where it is not the account's to pay. */
  settle(outcome: "paid" | "unpaid"): void {
    this.outcome = this.isWorking ? outcome : undefined;
    if (this.isWorking) return;
    if (outcome === "unpaid") this.allowance.spend(this.accountId, this.ms);
    this.ms = 0;
  }
}
