/**
 * Which observations hold run and frame slots of the engine, and which wait for them.
 *
 * An account holds at most its share, so that slots stay free for others. An observation that finds no slot is queued behind
 * the others of its account, and accounts are served round robin. An account whose first observation does not fit keeps its
 * place in the round; if it lacks frame slots of its model, slots that become free are reserved for it, because a stream of
 * small observations would otherwise starve a large one.
 */
import { Failure } from "../error/core.ts";
import { ROBOT } from "../error/robot.ts";
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import type { RunSlots } from "./exclusive.ts";

export type AdmissionLimits = Readonly<
  Record<
    | "framesMax"
    | "earlyFramesMax"
    | "accountEarlyFramesMax"
    | "chunksMax"
    | "accountFramesMax"
    | "accountChunksMax"
    | "admissionWaitingMax"
    | "accountWaitingMax"
    | "observationFramesMax",
    number
  >
>;

/** An observation's place in the queue, then its run slot and frame slots. */
export interface Permit {
  /** Resolves when the slots are granted; never, if it is released before. */
  readonly granted: Promise<undefined>;
  /** Gives back the place or the slots; later calls do nothing. */
  release(): void;
}

/** Frame slots of frames that arrived before their observation. */
export interface EarlySlots {
  /** Later calls do nothing. */
  release(): void;
}

export class Admission implements RunSlots {
  /** Accounts that hold or wait for something. */
  private readonly accounts = new Map<string, Account>();
  /** Accounts with a queue, in round-robin order. */
  private readonly round = new Set<Account>();
  /** Frame slots held, by model: each model has its own. */
  private readonly frames = new Tally();
  /** Of these, slots of frames whose observation has not arrived. */
  private readonly early = new Tally();
  /** Observations that wait for each model. */
  private readonly waitingFor = new Tally();
  private runs = 0;
  private queued = 0;

  constructor(private readonly limits: AdmissionLimits = LIMITS) {}

  /** Observations that hold slots. */
  get held(): number {
    return this.runs;
  }

  get waiting(): number {
    return this.queued;
  }

  take(accountId: string, model: string, frames: number): Permit | Failure {
    assert(frames <= this.limits.observationFramesMax, "an observation fits into the slots");
    const account = this.accounts.get(accountId) ?? new Account(accountId);
    this.accounts.set(accountId, account);
    const entry = new Entry(account, model, frames, () => this.release(entry));
    account.queue.add(entry);
    this.round.add(account);
    this.waitingFor.add(model, 1);
    this.queued += 1;
    this.admit();
    const refusal = entry.state === "waiting" ? this.crowded(account) : undefined;
    if (refusal) entry.release();
    return refusal ?? entry;
  }

  /** Early frames never take a slot that a waiting observation needs, nor more than their own share. */
  takeEarly(accountId: string, model: string, frames: number): EarlySlots | undefined {
    const { framesMax, earlyFramesMax, accountEarlyFramesMax } = this.limits;
    if (this.waitingFor.of(model) > 0 || this.early.of(model) + frames > earlyFramesMax) return undefined;
    const account = this.accounts.get(accountId) ?? new Account(accountId);
    if (account.early.of(model) + frames > accountEarlyFramesMax) return undefined;
    if (this.frames.of(model) + frames > framesMax || !account.hasRoom(model, frames, this.limits)) return undefined;
    this.accounts.set(accountId, account);
    const count = (sign: 1 | -1) => {
      this.early.add(model, sign * frames);
      account.early.add(model, sign * frames);
      this.countFrames(account, model, sign * frames);
    };
    count(1);
    let held = true;
    return {
      release: () => {
        if (!held) return;
        held = false;
        count(-1);
        this.forget(account);
        this.admit();
      },
    };
  }

  /** The refusal, if the queues are too long with the newest included. */
  private crowded({ queue }: Account): Failure | undefined {
    const { accountWaitingMax, admissionWaitingMax } = this.limits;
    const own = queue.size > accountWaitingMax;
    if (!own && this.queued <= admissionWaitingMax) return undefined;
    const who = own ? `${accountWaitingMax} observations of this account` : `${admissionWaitingMax} observations`;
    return new Failure(
      ROBOT.engine_unavailable,
      `${who} wait already, which is all that may; retry when some are answered`,
      {
        retryAfterSeconds: 1,
      },
    );
  }

  /** Grants slots to all that fit, account by account. One pass is enough: no slot becomes free during it. */
  private admit(): void {
    /** Models whose free frame slots are reserved for an account that was passed over. */
    const kept = new Set<string>();
    // An account that was granted a slot moves to the end of the round, so the loop meets it again.
    for (const account of this.round) {
      if (this.runs >= this.limits.chunksMax || kept.size === this.waitingFor.size) return;
      const [first] = account.queue;
      assert(first !== undefined, "an account in the round waits for something");
      if (kept.has(first.model) || !account.mayHold(first, this.limits)) continue;
      if (this.frames.of(first.model) + first.frames > this.limits.framesMax) kept.add(first.model);
      else this.grant(first);
    }
  }

  private grant(entry: Entry): void {
    this.leaveQueue(entry);
    this.round.delete(entry.account);
    if (entry.account.queue.size > 0) this.round.add(entry.account);
    this.count(entry, 1);
    entry.grant();
  }

  private release(entry: Entry): void {
    const { account, state } = entry;
    if (state === "released") return;
    entry.state = "released";
    if (state === "held") this.count(entry, -1);
    else this.leaveQueue(entry);
    if (account.queue.size === 0) this.round.delete(account);
    this.forget(account);
    this.admit();
  }

  private forget({ id, queue, runs, frames }: Account): void {
    if (queue.size === 0 && runs === 0 && frames.size === 0) this.accounts.delete(id);
  }

  private leaveQueue(entry: Entry): void {
    const waited = entry.account.queue.delete(entry);
    assert(waited, "who leaves the queue stands in it");
    this.waitingFor.add(entry.model, -1);
    this.queued -= 1;
  }

  private count({ account, model, frames }: Entry, sign: 1 | -1): void {
    this.runs += sign;
    account.runs += sign;
    this.countFrames(account, model, sign * frames);
  }

  private countFrames(account: Account, model: string, change: number): void {
    this.frames.add(model, change);
    account.frames.add(model, change);
  }
}

class Account {
  runs = 0;
  /** Frame slots held, by model; `early`: those whose observation has not arrived. */
  readonly frames = new Tally();
  readonly early = new Tally();
  /** In order of arrival. */
  readonly queue = new Set<Entry>();

  constructor(readonly id: string) {}

  /** Whether its share has room for one more run. */
  mayHold({ model, frames }: Entry, limits: AdmissionLimits): boolean {
    return this.runs < limits.accountChunksMax && this.hasRoom(model, frames, limits);
  }

  hasRoom(model: string, frames: number, { accountFramesMax }: AdmissionLimits): boolean {
    return this.frames.of(model) + frames <= accountFramesMax;
  }
}

class Entry implements Permit {
  state: "waiting" | "held" | "released" = "waiting";
  readonly granted: Promise<undefined>;
  private readonly turn = Promise.withResolvers<undefined>();

  constructor(
    readonly account: Account,
    readonly model: string,
    readonly frames: number,
    readonly release: () => void,
  ) {
    this.granted = this.turn.promise;
  }

  grant(): void {
    this.state = "held";
    this.turn.resolve(undefined);
  }
}

/** Counts by name; zero counts are removed. */
class Tally {
  private readonly counts = new Map<string, number>();

  /** Names whose count is not zero. */
  get size(): number {
    return this.counts.size;
  }

  of(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  add(name: string, change: number): void {
    const count = this.of(name) + change;
    assert(count >= 0, "no more is given back than was taken");
    if (count > 0) this.counts.set(name, count);
    else this.counts.delete(name);
  }
}
