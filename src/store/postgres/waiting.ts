/**
 * A caller's wait for an operation on a database that may not answer. It ends with the outcome, or after its time with what is known
 * by then. A statement that is still under way goes on without the caller.
 */
import type { Clock } from "../../std/clock.ts";
import { StoreDown } from "../store.ts";
import type { Unanswered } from "./pool.ts";

export class Waiting<T> {
  /** The caller has its outcome. */
  over = false;
  private readonly promise = Promise.withResolvers<T | StoreDown>();
  readonly outcome = this.promise.promise;
  private readonly disarm: () => void;
  private reason: string;
  /** An earlier try may have been done. */
  private unknown = false;
  private underWay = false;

  constructor(clock: Clock, ms: number) {
    this.reason = `the database did not answer within ${ms} ms`;
    this.disarm = clock.after(ms, () => this.giveUp());
  }

  /** A try was sent: until it fails it is not known whether it is done. */
  tried(): void {
    this.underWay = true;
  }

  failed({ reason, sent }: Unanswered): void {
    this.underWay = false;
    this.unknown ||= sent;
    this.reason = reason;
  }

  end(outcome: T | StoreDown): void {
    this.over = true;
    this.disarm();
    this.promise.resolve(outcome);
  }

  giveUp(): void {
    this.end(new StoreDown(this.reason, this.unknown || this.underWay));
  }
}
