/**
 * How long an observation would wait for its model, and its refusal where its chunk could not be ready in time.
 *
 * The estimate is the number of observations that are answered before this one, times the recent time of an answer. Accounts
 * take turns: another account counts with at most one observation more than this one has. While a replica is free every
 * observation is admitted, and its answer corrects a wrong estimate. Goal: past capacity the work goes into useful chunks. Not a goal:
 * the last per cent of capacity.
 */
import type { Clock } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

/** An answer counts half after the time of eight answers, but not before a quarter of a second. */
const HALF_LIFE_ANSWERS = 8;
const HALF_LIFE_MS_MIN = 250;
/** Weighted number of answers below which there is no estimate. */
const ANSWERS_MIN = 3;
/** Time without an answer after which there is no estimate. */
const FORGOTTEN_MS = 10_000;
/** Share of the time left that an estimate may fill: it is a mean, so at the edge every other chunk is late. */
const SHARE_MAX = 0.8;

export interface Demand {
  readonly accountId: string;
  readonly model: string;
  /** Inferences that the model makes at once: its working replicas. */
  readonly replicas: number;
}

export interface InFlight {
  /** Its chunk is there; the model has started on it at `startedMs`, monotonic. */
  computed(startedMs: number): void;
  /** Something else than the model kept it from its answer: that time says nothing about the model. */
  stalled(): void;
  /** It is answered or refused; later calls do nothing. */
  leave(): void;
}

export class Forecast {
  private readonly paces = new Map<string, Pace>();
  /** Observations that were refused so far. */
  shed = 0;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  /** Observations that are being answered. */
  get inside(): number {
    return [...this.paces.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** The entry, or the refusal of an observation that could not be answered within `leftMs`: `engine_unavailable`. */
  enter(demand: Demand, leftMs: number): InFlight | Failure {
    const pace = this.paceOf(demand.model);
    const { waitMs, runMs } = pace.estimate(demand);
    if (waitMs === 0 || waitMs + runMs <= SHARE_MAX * leftMs) return pace.enter(demand);
    this.shed += 1;
    const [wait, left] = [Math.round(waitMs + runMs), Math.round(leftMs)];
    const message =
      `too much is asked of this model: the chunk would be ready in about ${wait} ms and is of use for ${left} ms; ` +
      "nothing ran, retry with a fresh observation";
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds: secondsOf(waitMs) });
  }

  /** Whole seconds until an observation of this account would no longer have to wait; at least 1. */
  retryAfterSeconds(demand: Demand): number {
    return secondsOf(this.paceOf(demand.model).estimate(demand).waitMs);
  }

  private paceOf(model: string): Pace {
    const pace = this.paces.get(model) ?? new Pace(this.clock);
    this.paces.set(model, pace);
    return pace;
  }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000));
}

class Pace {
  /** Observations inside, by account. */
  private readonly accounts = new Map<string, number>();
  count = 0;
  /** Weighted number of the chunks so far. */
  private answers = 0;
  /** Weighted sum of the time between two of them while all replicas were busy. */
  private betweenMs = 0;
  /** Weighted sum of the time from the model's start to the chunk. */
  private runMs = 0;
  /** Monotonic ms of the last chunk. */
  private addedMs = 0;
  /** The last answer, or the begin of work after a rest. */
  private sinceMs = 0;
  /** Working replicas when the last observation entered. */
  private replicas = 1;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {}

  enter({ accountId, replicas }: Demand): InFlight {
    this.replicas = replicas;
    if (this.count === 0) this.sinceMs = this.clock.monotonicMs();
    this.add(accountId, 1);
    const enteredMs = this.clock.monotonicMs();
    let isInside = true;
    return {
      computed: (startedMs) => this.computed(startedMs, enteredMs),
      stalled: () => this.forget(),
      leave: () => {
        if (!isInside) return;
        isInside = false;
        this.add(accountId, -1);
      },
    };
  }

  /** The wait for the model's start, 0 where a replica is free or nothing is known, and the time from there to the answer. */
  estimate({ accountId, replicas }: Demand): { readonly waitMs: number; readonly runMs: number } {
    const waiting = Math.max(0, this.before(accountId) + 1 - replicas);
    const isKnown = this.answers >= ANSWERS_MIN && this.clock.monotonicMs() - this.addedMs < FORGOTTEN_MS;
    if (waiting === 0 || !isKnown) return { waitMs: 0, runMs: 0 };
    return { waitMs: (waiting * this.betweenMs) / this.answers, runMs: this.runMs / this.answers };
  }

  /** How many are answered before an observation of this account that comes now. */
  private before(accountId: string): number {
    const own = this.accounts.get(accountId) ?? 0;
    let before = own;
    for (const [other, count] of this.accounts) if (other !== accountId) before += Math.min(count, own + 1);
    return before;
  }

  /** A chunk is there. The wait for its durable record is no part of the model's pace. */
  private computed(startedMs: number, enteredMs: number): void {
    const nowMs = this.clock.monotonicMs();
    const meanMs = this.answers === 0 ? 0 : this.betweenMs / this.answers;
    const weight = 2 ** (-(nowMs - this.addedMs) / Math.max(HALF_LIFE_MS_MIN, HALF_LIFE_ANSWERS * meanMs));
    // With fewer observations than replicas the answers come more slowly than they could.
    const busy = Math.min(1, this.count / this.replicas);
    this.answers = this.answers * weight + 1;
    this.betweenMs = this.betweenMs * weight + (nowMs - Math.max(this.sinceMs, enteredMs)) * busy;
    this.runMs = this.runMs * weight + Math.max(0, nowMs - startedMs);
    this.addedMs = nowMs;
    this.sinceMs = nowMs;
  }

  private forget(): void {
    [this.answers, this.betweenMs, this.runMs] = [0, 0, 0];
    this.sinceMs = this.clock.monotonicMs();
  }

  private add(accountId: string, change: 1 | -1): void {
    this.count += change;
    const own = (this.accounts.get(accountId) ?? 0) + change;
    if (own > 0) this.accounts.set(accountId, own);
    else this.accounts.delete(accountId);
  }
}
