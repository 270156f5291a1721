/**
 * Which observations hold run and frame slots of the engine, and which wait for them.
 *
 * An account holds at most its share, and so does a model, so that slots stay free for others: a device that hangs holds up its own
 * models alone. An observation that finds no slot is queued behind the others of its account for the same model, and these lines are
 * served round robin. A line whose first observation does not fit keeps its place in the round; if that lacks frame slots of its
 * model, slots that become free are reserved for it, because a stream of small observations would otherwise starve a large one.
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
    | "modelChunksMax"
    | "accountFramesMax"
    | "accountChunksMax"
    | "accountModelChunksMax"
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
  /** Lines in which somebody waits, in round-robin order. */
  private readonly round = new Set<Line>();
  /** Frame slots held, by model: each model has its own. */
  private readonly frames = new Tally();
  /** Of these, slots of frames whose observation has not arrived. */
  private readonly early = new Tally();
  /** Observations that wait for each model. */
  private readonly waitingFor = new Tally();
  /** Observations that hold a run slot, by model. */
  private readonly runsOf = new Tally();
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
    const line = account.line(model);
    const entry = new Entry(line, frames, () => this.release(entry));
    line.queue.add(entry);
    this.round.add(line);
    account.waiting += 1;
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
  private crowded({ waiting }: Account): Failure | undefined {
    const { accountWaitingMax, admissionWaitingMax } = this.limits;
    const own = waiting > accountWaitingMax;
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

  /** Grants slots to all that fit, line by line. One pass is enough: no slot becomes free during it. */
  private admit(): void {
    const { chunksMax, modelChunksMax, framesMax } = this.limits;
    /** Models that grant nothing more: all their run slots are held, or free frame slots are reserved for a line that was passed over. */
    const closed = new Set<string>();
    // A line that was granted a slot moves to the end of the round, so the loop meets it again.
    for (const line of this.round) {
      if (this.runs >= chunksMax || closed.size === this.waitingFor.size) return;
      const { model, account, queue } = line;
      const [first] = queue;
      assert(first !== undefined, "somebody waits in a line of the round");
      if (closed.has(model) || !account.mayHold(first, this.limits)) continue;
      const fits = this.runsOf.of(model) < modelChunksMax && this.frames.of(model) + first.frames <= framesMax;
      if (fits) this.grant(first);
      else closed.add(model);
    }
  }

  private grant(entry: Entry): void {
    const { line } = entry;
    this.leaveQueue(entry);
    this.round.delete(line);
    if (line.queue.size > 0) this.round.add(line);
    this.count(entry, 1);
    entry.grant();
  }

  private release(entry: Entry): void {
    const { line, state } = entry;
    if (state === "released") return;
    entry.state = "released";
    if (state === "held") this.count(entry, -1);
    else this.leaveQueue(entry);
    if (line.queue.size === 0) this.round.delete(line);
    this.forget(line.account);
    this.admit();
  }

  private forget({ id, waiting, runs, frames }: Account): void {
    if (waiting === 0 && runs === 0 && frames.size === 0) this.accounts.delete(id);
  }

  private leaveQueue(entry: Entry): void {
    const { account, model, queue } = entry.line;
    const waited = queue.delete(entry);
    assert(waited, "who leaves the queue stands in it");
    account.waiting -= 1;
    this.waitingFor.add(model, -1);
    this.queued -= 1;
  }

  private count({ line: { account, model }, frames }: Entry, sign: 1 | -1): void {
    this.runs += sign;
    this.runsOf.add(model, sign);
    account.runs += sign;
    account.runsOf.add(model, sign);
    this.countFrames(account, model, sign * frames);
  }

  private countFrames(account: Account, model: string, change: number): void {
    this.frames.add(model, change);
    account.frames.add(model, change);
  }
}

/** Observations of one account that wait for one model. */
interface Line {
  readonly account: Account;
  readonly model: string;
  /** In order of arrival. */
  readonly queue: Set<Entry>;
}

class Account {
  /** Run slots held, over all models and of each. */
  runs = 0;
  readonly runsOf = new Tally();
  /** Observations that wait, over all models. */
  waiting = 0;
  /** Frame slots held, by model; `early`: those whose observation has not arrived. */
  readonly frames = new Tally();
  readonly early = new Tally();
  private readonly lines = new Map<string, Line>();

  constructor(readonly id: string) {}

  /** Of a served model: there are few. */
  line(model: string): Line {
    const line = this.lines.get(model) ?? { account: this, model, queue: new Set() };
    this.lines.set(model, line);
    return line;
  }

  /** Whether its share has room for one more run. */
  mayHold({ line: { model }, frames }: Entry, limits: AdmissionLimits): boolean {
    const { accountChunksMax, accountModelChunksMax } = limits;
    const runsFit = this.runs < accountChunksMax && this.runsOf.of(model) < accountModelChunksMax;
    return runsFit && this.hasRoom(model, frames, limits);
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
    readonly line: Line,
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
