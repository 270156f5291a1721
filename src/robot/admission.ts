/**
 * Which observations hold permits for the engine, one for the inference and one for each frame, and which wait for them.
 *
 * An account holds at most its share, so that permits stay free for others. A quarter of all inference permits, and of each account's
 * share, is kept in equal parts for the served models: models that hang hold up no other one. An observation without a permit is queued
 * behind the others of its account for the same model. Accounts are served round robin, and so are the models of each. An account none
 * of whose observations fits keeps its turn in the round; if one lacks frame permits of its model, those that become free are reserved
 * for it, because a stream of small observations would otherwise starve a large one.
 */
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";

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

/** The permits of one observation, or its turn in the queue for them. */
export interface Permit {
  /** Resolves when the permits are granted; never, if it is released before. */
  readonly granted: Promise<undefined>;
  /** Later calls do nothing. */
  release(): void;
}

/** Permits of frames that arrived before their observation. */
export type EarlyPermits = Pick<Permit, "release">;

export class Admission {
  /** Accounts that hold or wait for something. */
  private readonly accounts = new Map<string, Account>();
  /** Accounts that wait, in round-robin order. */
  private readonly round = new Set<Account>();
  /** Frame permits held, by model: each model has its own. */
  private readonly frames = new Tally();
  /** Frame permits held of frames whose observation has not arrived. */
  private readonly early = new Tally();
  /** Observations that wait for each model. */
  private readonly waitingFor = new Tally();
  /** Inference permits held, by model. */
  private readonly inferences = new Tally();
  /** Observations that hold permits. */
  held = 0;
  waiting = 0;

  /** `served`: the number of served models. */
  constructor(
    private readonly limits: AdmissionLimits = LIMITS,
    private readonly served: () => number = () => 1,
  ) {}

  /** Permits for one inference with `frames` frames, now or when its turn comes; `engine_unavailable` when too many wait. */
  take(accountId: string, model: string, frames: number): Permit | Failure {
    assert(frames <= this.limits.observationFramesMax, "one observation's frames are fewer than the permits");
    const account = this.accounts.get(accountId) ?? new Account(accountId);
    this.accounts.set(accountId, account);
    const entry = new Entry(account, model, frames, () => this.release(entry));
    account.enqueue(entry);
    this.round.add(account);
    this.waitingFor.add(model, 1);
    this.waiting += 1;
    this.admit();
    const refusal = entry.state === "waiting" ? this.crowded(account) : undefined;
    if (refusal) entry.release();
    return refusal ?? entry;
  }

  /** Early frames never take a permit that a waiting observation needs, nor more than their own share. */
  takeEarly(accountId: string, model: string, frames: number): EarlyPermits | undefined {
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
  private crowded({ waiting }: Account): Failure | undefined {
    const { accountWaitingMax, admissionWaitingMax } = this.limits;
    const own = waiting > accountWaitingMax;
    if (!own && this.waiting <= admissionWaitingMax) return undefined;
    const who = own ? `${accountWaitingMax} observations of this account` : `${admissionWaitingMax} observations`;
    const message = `${who} wait already, the most that may wait; retry when some are answered`;
    return new Failure(ROBOT.engine_unavailable, message, { retryAfterSeconds: 1 });
  }

  /** Grants permits to all that fit, account by account. One pass is enough: none becomes free during it. */
  private admit(): void {
    /** Models that grant nothing more: they have no inference permit left, or their free frame permits are reserved. */
    const closed = new Set<string>();
    // An account that was granted a permit moves to the end of the round, so the loop meets it again.
    for (const account of this.round) {
      if (this.held >= this.limits.chunksMax || closed.size === this.waitingFor.size) return;
      const next = this.nextOf(account, closed);
      if (next) this.grant(next);
    }
  }

  private nextOf(account: Account, closed: Set<string>): Entry | undefined {
    const { chunksMax, framesMax } = this.limits;
    for (const [model, first] of account.firsts()) {
      if (closed.has(model) || !account.mayHold(first, this.limits, this.served())) continue;
      const framesFit = this.frames.of(model) + first.frames <= framesMax;
      if (framesFit && this.inferences.leavesTheirs(model, chunksMax, this.served())) return first;
      closed.add(model);
    }
    return undefined;
  }

  private grant(entry: Entry): void {
    const { account } = entry;
    this.leaveQueue(entry);
    account.passTurn(entry.model);
    this.round.delete(account);
    if (account.waiting > 0) this.round.add(account);
    this.count(entry, 1);
    entry.grant();
  }

  private release(entry: Entry): void {
    const { account, state } = entry;
    if (state === "released") return;
    entry.state = "released";
    if (state === "held") this.count(entry, -1);
    else this.leaveQueue(entry);
    if (account.waiting === 0) this.round.delete(account);
    this.forget(account);
    this.admit();
  }

  private forget({ id, waiting, inferences, frames }: Account): void {
    if (waiting === 0 && inferences.size === 0 && frames.size === 0) this.accounts.delete(id);
  }

  private leaveQueue(entry: Entry): void {
    entry.account.dequeue(entry);
    this.waitingFor.add(entry.model, -1);
    this.waiting -= 1;
  }

  private count({ account, model, frames }: Entry, sign: 1 | -1): void {
    this.held += sign;
    this.inferences.add(model, sign);
    account.inferences.add(model, sign);
    this.countFrames(account, model, sign * frames);
  }

  private countFrames(account: Account, model: string, change: number): void {
    this.frames.add(model, change);
    account.frames.add(model, change);
  }
}

class Account {
  /** Permits held, by model; `early`: those of frames whose observation has not arrived. */
  readonly inferences = new Tally();
  readonly frames = new Tally();
  readonly early = new Tally();
  /** Observations that wait, over all models. */
  waiting = 0;
  /** The queue of each model with a waiting observation; models in the order of their turns. */
  private readonly lines = new Map<string, Set<Entry>>();

  constructor(readonly id: string) {}

  enqueue(entry: Entry): void {
    const line = this.lines.get(entry.model) ?? new Set();
    this.lines.set(entry.model, line.add(entry));
    this.waiting += 1;
  }

  dequeue(entry: Entry): void {
    const line = this.lines.get(entry.model);
    assert(line?.delete(entry) === true, "an observation leaves the queue that it is in");
    if (line.size === 0) this.lines.delete(entry.model);
    this.waiting -= 1;
  }

  /** The first observation of each queue. */
  *firsts(): Iterable<[string, Entry]> {
    for (const [model, [first]] of this.lines) {
      assert(first !== undefined, "a queue is not empty");
      yield [model, first];
    }
  }

  /** The model's next turn comes after those of the others. */
  passTurn(model: string): void {
    const line = this.lines.get(model);
    if (!line) return;
    this.lines.delete(model);
    this.lines.set(model, line);
  }

  /** Its share has room for one more inference. */
  mayHold({ model, frames }: Entry, limits: AdmissionLimits, served: number): boolean {
    const fits = this.inferences.leavesTheirs(model, limits.accountChunksMax, served);
    return fits && this.hasRoom(model, frames, limits);
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

/** The share that is kept for names that hold less than their part of it. */
const KEPT_SHARE = 1 / 4;

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

  /** `max` has room for one more of `name` beside what is kept for the other ones of `names`, in equal parts. */
  leavesTheirs(name: string, max: number, names: number): boolean {
    const kept = Math.floor((max * KEPT_SHARE) / names);
    let [others, theirs] = [0, 0];
    for (const [other, count] of this.counts) {
      if (other === name) continue;
      others += 1;
      theirs += Math.max(count, kept);
    }
    theirs += Math.max(0, names - 1 - others) * kept;
    return Math.max(this.of(name) + 1, kept) + theirs <= max;
  }

  add(name: string, change: number): void {
    const count = this.of(name) + change;
    assert(count >= 0, "no more is given back than was taken");
    if (count > 0) this.counts.set(name, count);
    else this.counts.delete(name);
  }
}
