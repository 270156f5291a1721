/**
 * Processor time of one connection's messages since its last answer. A chunk pays for it; where the answer is a refusal or a
 * replay, nobody does.
 */
import type { Unpaid } from "../../charge/unpaid.ts";
import type { Clock } from "../../std/clock.ts";

export class Spent {
  private ms = 0;
  private isWorking = false;
  /** What the message at hand has come to, which is settled once its whole cost is known. */
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
