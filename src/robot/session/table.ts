/**
 * The sessions of all accounts: which one a request belongs to, whether it may run, and what becomes of its step.
 *
 * Live sessions stand in memory. Which ones there were is in the store: an id that was open once and is alive no more
 * answers 410, also after a restart.
 */
import { Failure } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { assert } from "../../std/assert.ts";
import type { Clock } from "../../std/clock.ts";
import { isAnonId, makeId } from "../../std/ids.ts";
import type { SessionKey } from "../../store/robot/records.ts";
import type { RobotStore } from "../../store/robot/robot.ts";
import { StoreDown } from "../../store/store.ts";
import * as machine from "./machine.ts";
import { SeenIds } from "./seen-ids.ts";
import type { SlotPool } from "./slots.ts";

export interface SessionName {
  readonly accountId: string;
  readonly model: string;
  /** The client's id; undefined: the request is a session of its own that cannot go on. */
  readonly sessionId: string | undefined;
  /** Who asks, where it is a connection that holds the session. */
  readonly holder?: Holder | undefined;
}

/** A connection that has a session for itself. */
export interface Holder {
  /** The connection has ended; what it asked for while it was there is for nobody. */
  readonly gone: boolean;
  /** The session has ended by itself or by somebody else; the connection holds it no more. */
  sessionEnded(): void;
}

/** What a connection is to hold. */
interface HoldRequest {
  readonly accountId: string;
  readonly model: string;
  /** undefined: a new session, whose id is assigned. */
  readonly sessionId: string | undefined;
  readonly instruction: string;
  readonly holder: Holder;
  readonly slots: SlotPool | undefined;
}

/** The right to run one chunk of a session. */
export interface Ticket {
  /** The client's id, or the assigned `anon-` id. */
  readonly sessionId: string;
  /** Whether the client named the session. */
  readonly named: boolean;
  readonly step: number;
  /** Where the episode's memory is; undefined before `admit`, and always on models without memory. */
  readonly slot: number | undefined;
  /** Capacity, asked after all other checks: `no_replica_free` when a new session finds no place. */
  admit(): Failure | undefined;
  /** The chunk goes out: step + 1. */
  commit(): void;
  /** Nothing goes out: the step stays. */
  fail(): void;
}

interface TableOptions {
  readonly clock: Clock;
  readonly store: Pick<RobotStore, "sessionLastAt" | "sessionOpen">;
  readonly sessionsMax?: number;
}

/** A session that is alive. */
interface Entry {
  state: machine.Idle | machine.Busy;
  readonly slots: SlotPool | undefined;
  slot: number | undefined;
  holder?: Holder | undefined;
  /** Of a session that a connection has opened as a new one. */
  ids?: SeenIds;
  /**
   * Somebody is about to be done with it: its connection went away while a chunk ran, or one is just opening it. Resolves when the
   * session is idle or has ended.
   */
  left?: PromiseWithResolvers<void> | undefined;
}

const NEW: machine.SessionState = { kind: "new" };

/** While the store is asked about an id that is not alive, the id is taken. */
const LOOKING: machine.Busy = { kind: "busy", step: 0, instruction: "", before: undefined, ending: false };

export class SessionTable {
  /** In the order in which they became idle, oldest first; busy ones stand anywhere. */
  private readonly live = new Map<string, Entry>();
  private readonly clock: Clock;
  private readonly store: TableOptions["store"];
  private readonly sessionsMax: number;

  constructor({ clock, store, sessionsMax = LIMITS.sessionsMax }: TableOptions) {
    this.clock = clock;
    this.store = store;
    this.sessionsMax = sessionsMax;
  }

  /** Sessions that are idle or busy. */
  get size(): number {
    return this.live.size;
  }

  /**
   * The session stage up to `image_count_mismatch`; a ticket holds the session until it is given back. `slots` are those of
   * a model with memory.
   */
  async begin(
    name: SessionName,
    request: machine.SessionRequest,
    counts: machine.ImageCounts,
    slots?: SlotPool,
  ): Promise<Ticket | Failure> {
    this.sweep();
    const { sessionId, holder } = name;
    if (sessionId === undefined) return this.beginAlone(request, counts);
    const key = keyOf(name, sessionId);
    const before = this.live.get(key);
    if (before && before.holder !== holder) return machine.busyElsewhere();
    if (!before && holder) return machine.ended();
    const entry = before ?? this.look(key, slots);
    const state = before?.state ?? (await this.past({ ...name, sessionId }));
    const busy = state instanceof Failure ? state : machine.begin(state, request, counts);
    if (busy instanceof Failure) {
      if (!before) this.live.delete(key);
      return busy;
    }
    entry.state = busy;
    return new SessionTicket(sessionId, busy.step, entry, {
      admit: () => (busy.before === undefined ? this.place(entry) : undefined),
      end: (next) => this.settle(key, entry, next),
      clock: this.clock,
    });
  }

  /**
   * A connection takes the session for itself until `release`: a new one with its place, or a live one at its next step. A chunk
   * that its last connection left behind is waited for, and so is another connection that is just opening it: it may be gone by
   * then. `gone`: this one was gone itself.
   */
  async hold(request: HoldRequest): Promise<{ readonly sessionId: string; readonly step: number } | "gone" | Failure> {
    this.sweep();
    const { holder, instruction, slots } = request;
    const sessionId = request.sessionId ?? makeId("anon-", this.clock);
    const key = keyOf({ ...request, sessionId }, sessionId);
    for (let left = this.live.get(key)?.left; left; left = this.live.get(key)?.left) await left.promise;
    if (holder.gone) return "gone";
    const before = this.live.get(key);
    if (before?.holder) return machine.busyElsewhere();
    const entry = before ?? this.look(key, slots);
    if (!before) {
      entry.left = Promise.withResolvers();
      entry.ids = new SeenIds();
    }
    const now = this.clock.monotonicMs();
    const idle = before ? machine.open(before.state, instruction, now) : await this.openNew(entry, sessionId, request);
    if (idle instanceof Failure || idle === "gone") {
      if (!before) this.discard(key, entry);
      return idle;
    }
    entry.holder = holder.gone ? undefined : holder;
    this.settle(key, entry, idle);
    return holder.gone ? "gone" : { sessionId, step: idle.step };
  }

  /**
   * Whether the session was never asked for an observation of this id, where that is known without the store: in a session that a
   * connection has opened as a new one. To be asked of every observation, because it remembers.
   */
  isFirst(session: SessionKey, observationId: string): boolean {
    const entry = this.live.get(keyOf(session, session.sessionId));
    const seen = entry?.ids?.see(observationId) ?? true;
    return !seen && entry?.state !== LOOKING;
  }

  /** The connection lets the session go: `end` ends it, `stay` leaves it to the next one for as long as a session may idle. */
  release(name: SessionName & { readonly sessionId: string; readonly holder: Holder }, then: "end" | "stay"): void {
    const key = keyOf(name, name.sessionId);
    const entry = this.live.get(key);
    if (!entry || entry.holder !== name.holder) return;
    entry.holder = undefined;
    const { state } = entry;
    if (then === "end") this.settle(key, entry, machine.end(state));
    else if (state.kind === "busy") entry.left = Promise.withResolvers();
    else this.settle(key, entry, { ...state, sinceMs: this.clock.monotonicMs() });
  }

  /** The client ends its session; nothing happens when there is none. */
  end(name: SessionName & { readonly sessionId: string }): void {
    const key = keyOf(name, name.sessionId);
    const entry = this.live.get(key);
    if (entry && entry.state !== LOOKING) this.settle(key, entry, machine.end(entry.state));
  }

  /** Ends sessions that idled too long. Called by every `begin`, and by a timer. */
  sweep(): void {
    const now = this.clock.monotonicMs();
    for (const [key, entry] of this.live) {
      if (entry.state.kind === "busy") continue;
      const next = machine.pass(entry.state, now);
      if (next === entry.state) break;
      this.settle(key, entry, next);
    }
  }

  /** Takes an id that is not alive, from before the store is asked about it until its first request has begun or is refused. */
  private look(key: string, slots: SlotPool | undefined): Entry {
    const entry: Entry = { state: LOOKING, slots, slot: undefined };
    this.live.set(key, entry);
    return entry;
  }

  /** A connection opens a session that is not alive: what it was before, its place, and that it was open. */
  private async openNew(
    entry: Entry,
    sessionId: string,
    { accountId, model, sessionId: named, instruction, holder }: HoldRequest,
  ): Promise<machine.Idle | "gone" | Failure> {
    const session = { accountId, model, sessionId };
    const past = named === undefined ? NEW : await this.past(session);
    if (holder.gone) return "gone";
    const idle = past instanceof Failure ? past : machine.open(past, instruction, this.clock.monotonicMs());
    if (idle instanceof Failure) return idle;
    const refused = this.place(entry) ?? (await this.record(session));
    // Nobody knows an assigned id yet. A named one stays for the connection's next one: that it was open is recorded.
    return refused ?? (holder.gone && named === undefined ? "gone" : idle);
  }

  /** A session that could not be opened leaves nothing. */
  private discard(key: string, { slot, slots, left }: Entry): void {
    this.live.delete(key);
    if (slot !== undefined) slots?.give(slot);
    left?.resolve();
  }

  /** That it was open, durably, so that its id is never taken for a new one. An assigned id says so by its form. */
  private async record(session: SessionKey): Promise<Failure | undefined> {
    if (isAnonId(session.sessionId)) return undefined;
    const kept = await this.store.sessionOpen({ ...session, at: Math.floor(this.clock.unixMs() / 1000) });
    return kept instanceof StoreDown ? recordDown(kept) : undefined;
  }

  /** What an id that is not alive was before. */
  private async past(session: {
    accountId: string;
    model: string;
    sessionId: string;
  }): Promise<machine.SessionState | Failure> {
    // An assigned id belongs to a request that is over, wherever it was made.
    if (isAnonId(session.sessionId)) return { kind: "expired" };
    const lastAt = await this.store.sessionLastAt(session);
    if (lastAt instanceof StoreDown) {
      return recordDown(lastAt);
    }
    // The record goes together with those of its observations, a day after the session's end (retention.ts).
    return lastAt === undefined ? { kind: "new" } : { kind: "expired" };
  }

  private beginAlone(request: machine.SessionRequest, counts: machine.ImageCounts): Ticket | Failure {
    const failure = machine.beginAlone(request, counts);
    if (failure) return failure;
    return {
      sessionId: makeId("anon-", this.clock),
      named: false,
      step: 0,
      slot: undefined,
      admit: () => undefined,
      commit: () => {},
      fail: () => {},
    };
  }

  /** Puts a live session into its next state, at the end of the order of idleness, or ends it. */
  private settle(key: string, entry: Entry, next: machine.SessionState): void {
    assert(this.live.get(key) === entry, "a session is settled while it is alive");
    if (next.kind === "busy") {
      entry.state = next;
      return;
    }
    this.live.delete(key);
    if (next.kind === "idle") {
      entry.state = next;
      this.live.set(key, entry);
    } else {
      if (entry.slot !== undefined) entry.slots?.give(entry.slot);
      entry.holder?.sessionEnded();
    }
    entry.left?.resolve();
    entry.left = undefined;
  }

  /** A place for a session that opens; it stands in the table already. */
  private place(entry: Entry): Failure | undefined {
    if (entry.slots) {
      entry.slot = entry.slots.take();
      if (entry.slot !== undefined) return undefined;
    } else if (this.withoutMemory() <= this.sessionsMax) return undefined;
    const retryAfterSeconds = this.secondsToFree(entry.slots);
    return new Failure(
      ROBOT.no_replica_free,
      `there is no place for another session; the first one can come free in ${retryAfterSeconds} s, retry then`,
      { retryAfterSeconds },
    );
  }

  /** Sessions that the table bounds; those of models with memory are bounded by its slots. */
  private withoutMemory(): number {
    if (this.live.size <= this.sessionsMax) return this.live.size;
    let count = 0;
    for (const { slots } of this.live.values()) if (!slots) count += 1;
    return count;
  }

  /** Seconds until the first place can come free: the session that idles longest expires, or one that runs does so after it. */
  private secondsToFree(slots: SlotPool | undefined): number {
    const now = this.clock.monotonicMs();
    let dueMs = now + LIMITS.sessionIdleMs;
    for (const { state, slots: own } of this.live.values()) {
      if (own !== slots) continue;
      // An ended session's place is free as soon as its chunk is answered.
      if (state.kind === "busy" && state.ending) return 1;
      if (state.kind === "idle") dueMs = Math.min(dueMs, machine.expiresMs(state));
    }
    return Math.max(1, Math.ceil((dueMs - now) / 1000));
  }
}

function recordDown({ reason }: StoreDown): Failure {
  return new Failure(
    EVERY.metering_unavailable,
    "the record of sessions does not answer, nothing ran; retry with backoff",
    { retryAfterSeconds: 1, detail: `store: ${reason}` },
  );
}

function keyOf({ accountId, model }: SessionName, sessionId: string): string {
  return `${accountId}\n${model}\n${sessionId}`;
}

/** Read through the entry: the session may be ended while its chunk runs. */
class SessionTicket implements Ticket {
  readonly named = true;
  private open = true;

  constructor(
    readonly sessionId: string,
    readonly step: number,
    private readonly entry: Entry,
    private readonly table: {
      readonly admit: () => Failure | undefined;
      readonly end: (next: machine.SessionState) => void;
      readonly clock: Clock;
    },
  ) {}

  get slot(): number | undefined {
    return this.entry.slot;
  }

  admit(): Failure | undefined {
    return this.table.admit();
  }

  commit(): void {
    this.table.end(machine.commit(this.take(), this.table.clock.monotonicMs()));
  }

  fail(): void {
    this.table.end(machine.fail(this.take(), this.table.clock.monotonicMs()));
  }

  private take(): machine.Busy {
    const { state } = this.entry;
    assert(this.open && state.kind === "busy", "a ticket is given back once");
    this.open = false;
    return state;
  }
}
