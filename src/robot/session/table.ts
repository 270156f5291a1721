/**
 * The live sessions of all accounts, in memory. The store has a record of every id that was ever open, so that an id whose
 * session has ended answers 410, also after a restart.
 */
import { LIMITS } from "../../limits.ts";
import { assert } from "../../std/assert.ts";
import { EVERY } from "../../std/every-route.ts";
import { Failure } from "../../std/failure.ts";
import { isAnonId, makeId } from "../../std/ids.ts";
import { Allowance } from "../../std/quota.ts";
import { type SeenClock, seenSeconds } from "../../std/seen-clock.ts";
import { StoreDown } from "../../store/store.ts";
import { ROBOT } from "../errors.ts";
import { SeenIds } from "../replay.ts";
import type { SessionKey } from "../store/records.ts";
import type { RobotStore } from "../store/robot.ts";
import * as machine from "./machine.ts";
import { type SlotPool, secondsToFree } from "./slots.ts";
import { type Ticket, ticketAlone, ticketOf } from "./ticket.ts";

/** A request's session, and who asks for it. */
export interface SessionName {
  readonly accountId: string;
  readonly model: string;
  /** The client's id; undefined: the request alone is a session, of one chunk. */
  readonly sessionId: string | undefined;
  /** The connection of the request, if it is one that holds the session. */
  readonly holder?: Holder | undefined;
  /** Public id of the request's key. */
  readonly keyId?: string | undefined;
  readonly observationId?: string | undefined;
}

/** A connection that holds a session exclusively. */
export interface Holder {
  /** The connection has ended: a session that is still being opened for it must not be given to it. */
  readonly gone: boolean;
  /** Public id of its key. */
  readonly keyId: string;
  /** Resolves to whether its client gives a sign of life in time. */
  answers(): Promise<boolean>;
  /** Another connection of its key takes the session, because it does not answer: it ends and releases the session. */
  takenOver(): void;
  /** Called when the session has expired or was ended by another request. */
  sessionEnded(): void;
}

/** A session that a connection asks to hold. */
export interface HoldRequest extends Pick<SessionName, "accountId" | "model"> {
  /** undefined: a new session with an assigned id. */
  readonly sessionId: string | undefined;
  readonly instruction: string;
  readonly holder: Holder;
  readonly slots: SlotPool | undefined;
  /** Why the account cannot pay for one chunk; asked before the session takes capacity. */
  unpayable(): Promise<Failure | undefined>;
}

interface Entry {
  readonly accountId: string;
  state: machine.Idle | machine.Busy;
  readonly slots: SlotPool | undefined;
  slot: number | undefined;
  holder?: Holder | undefined;
  /** Public id of the key that asked for its last answered chunk. */
  driver?: string | undefined;
  /** The ids of a session that a connection, or an observation with an id, opened as new; undefined where some are unknown. */
  ids?: SeenIds;
  /** Set while a chunk of a closed connection runs, or a connection opens the session; resolves when it is idle or has ended. */
  left?: PromiseWithResolvers<void> | undefined;
}

const NEW: machine.SessionState = { kind: "new" };

/** The state of an id while the store is asked about it: busy, so that a second request is refused meanwhile. */
const LOOKING: machine.Busy = { kind: "busy", step: 0, instruction: "", before: undefined, ending: false };

export class SessionTable {
  /** Sessions by key; the idle ones in the order in which they became idle, oldest first, busy ones anywhere between. */
  private readonly live = new Map<string, Entry>();
  /** Sessions that each account has opened by name. */
  private readonly opened: Allowance;

  constructor(
    private readonly clock: SeenClock,
    private readonly store: Pick<RobotStore, "sessionLastAt" | "sessionOpen">,
    private readonly sessionsMax: number = LIMITS.sessionsMax,
    private readonly namedHourMax: number = LIMITS.namedSessionsHourMax,
  ) {
    this.opened = new Allowance(namedHourMax, 3_600_000, clock);
  }

  get size(): number {
    return this.live.size;
  }

  /** The session's checks, up to `image_count_mismatch`. The session is busy until the ticket's `commit` or `fail`. */
  async begin(
    name: SessionName,
    request: machine.SessionRequest,
    counts: machine.ImageCounts,
    slots?: SlotPool,
  ): Promise<Ticket | Failure> {
    this.sweep();
    const { sessionId, holder, keyId, observationId } = name;
    if (sessionId === undefined) {
      return machine.beginAlone(request, counts) ?? ticketAlone(makeId("anon-", this.clock));
    }
    const key = keyOf(name, sessionId);
    const before = this.live.get(key);
    if (before && before.holder !== holder) return machine.busyElsewhere();
    if (!before && holder) return machine.ended();
    const entry = before ?? this.look(key, name.accountId, slots);
    const state = before?.state ?? (await this.past({ ...name, sessionId }));
    const busy =
      state instanceof Failure
        ? state
        : machine.begin(state, { ...request, otherDriver: isOther(before, name) }, counts);
    if (busy instanceof Failure) {
      if (!before) this.live.delete(key);
      return busy;
    }
    entry.state = busy;
    if (!before && observationId !== undefined) entry.ids ??= new SeenIds();
    // The first look may have been before the session was in the table.
    if (observationId !== undefined) entry.ids?.see(observationId);
    const admit = () => (busy.before === undefined ? this.takeCapacity(entry, sessionId) : undefined);
    return ticketOf(entry, { sessionId, step: busy.step, admit }, (running, isAnswered) => {
      if (isAnswered) entry.driver = keyId;
      const next = isAnswered ? machine.commit : machine.fail;
      this.settle(key, entry, next(running, this.clock.monotonicMs()));
    });
  }

  /**
   * Gives the session to one connection alone until `release`. Waits for a chunk of the last connection, for another one that is
   * opening the session, and for a sign of life of the one that holds it. `gone`: the connection has closed meanwhile.
   */
  async hold(request: HoldRequest): Promise<{ readonly sessionId: string; readonly step: number } | "gone" | Failure> {
    this.sweep();
    const { holder, slots } = request;
    const sessionId = request.sessionId ?? makeId("anon-", this.clock);
    const key = keyOf({ ...request, sessionId }, sessionId);
    for (let one = this.live.get(key); one?.left || one?.holder; one = this.live.get(key)) {
      const refused = one.left ? await one.left.promise : await this.askHolder(key, one, holder);
      if (holder.gone) return "gone";
      if (refused) return refused;
    }
    if (holder.gone) return "gone";
    const before = this.live.get(key);
    const entry = before ?? this.look(key, request.accountId, slots);
    if (!before) {
      entry.left = Promise.withResolvers();
      entry.ids = new SeenIds();
    }
    const opened = before ? await this.openAgain(key, entry, request) : await this.openNew(entry, sessionId, request);
    // The slot may be lost meanwhile. The id is on record, so that a retry could not open it on another replica: the client needs a new one.
    const idle = opened instanceof Failure || opened === "gone" || !hasLostSlot(entry) ? opened : machine.ended();
    if (idle instanceof Failure || idle === "gone") {
      if (!before) this.discard(key, entry);
      return idle;
    }
    entry.holder = holder.gone ? undefined : holder;
    this.settle(key, entry, idle);
    return holder.gone ? "gone" : { sessionId, step: idle.step };
  }

  /** The refusal if the connection that holds the session is there, or has another key; else that one has lost it. */
  private async askHolder(key: string, entry: Entry, asking: Holder): Promise<Failure | undefined> {
    const { holder } = entry;
    if (holder === undefined) return undefined;
    if (holder.keyId !== asking.keyId || (await holder.answers())) return machine.busyElsewhere();
    // While it was asked it may have ended, or lost the session to a third one.
    if (asking.gone || this.live.get(key) !== entry || entry.holder !== holder) return undefined;
    holder.takenOver();
    assert(entry.holder !== holder, "a connection that loses its session releases it");
    return undefined;
  }

  /** The session has surely not seen the id before, as far as this is known without the store. Adds the id to those seen. */
  isFirst(session: SessionKey, observationId: string): boolean {
    const entry = this.live.get(keyOf(session, session.sessionId));
    const seen = entry?.ids?.see(observationId) ?? true;
    return !seen && entry?.state !== LOOKING;
  }

  /** The connection lets the session go: `end` ends it, `stay` leaves it to the next one until it has idled too long. */
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

  /** The client ends its session; without one, nothing happens. */
  end(name: SessionName & { readonly sessionId: string }): void {
    const key = keyOf(name, name.sessionId);
    const entry = this.live.get(key);
    if (entry && entry.state !== LOOKING) this.settle(key, entry, machine.end(entry.state));
  }

  /** Ends the sessions whose slots are lost, each after the answer of a running request. What is being opened is left to `hold`. */
  loseSlots(slots: SlotPool): void {
    const isLost = (entry: Entry) => entry.slots === slots && entry.state !== LOOKING && hasLostSlot(entry);
    for (const [key, entry] of [...this.live]) if (isLost(entry)) this.settle(key, entry, machine.end(entry.state));
  }

  /** Ends sessions that idled too long. Called by every `begin` and by a timer. */
  sweep(): void {
    const now = this.clock.monotonicMs();
    for (const [key, entry] of this.live) {
      if (entry.state.kind === "busy") continue;
      const next = machine.pass(entry.state, now);
      if (next === entry.state) break;
      this.settle(key, entry, next);
    }
  }

  /** Takes an id without a live session, before the store is asked about it. */
  private look(key: string, accountId: string, slots: SlotPool | undefined): Entry {
    const entry: Entry = { accountId, state: LOOKING, slots, slot: undefined };
    this.live.set(key, entry);
    return entry;
  }

  /** Opens a session for a connection: checks the id's record, takes a slot, records that it was open. */
  private async openNew(
    entry: Entry,
    sessionId: string,
    { accountId, model, sessionId: named, instruction, holder, unpayable }: HoldRequest,
  ): Promise<machine.Idle | "gone" | Failure> {
    const session = { accountId, model, sessionId };
    const past = named === undefined ? NEW : await this.past(session);
    if (holder.gone) return "gone";
    const idle = past instanceof Failure ? past : machine.open(past, instruction, this.clock.monotonicMs());
    if (idle instanceof Failure) return idle;
    const unpaid = await unpayable();
    if (holder.gone) return "gone";
    const refused = unpaid ?? this.takeCapacity(entry, session.sessionId) ?? (await this.record(session));
    // The client does not know an assigned id yet. A named session stays: its next connection may hold it.
    return refused ?? (holder.gone && named === undefined ? "gone" : idle);
  }

  /** Gives a live session to a connection. It is held while the account is looked at, so that no other request gets it meanwhile. */
  private async openAgain(
    key: string,
    entry: Entry,
    { instruction, holder, unpayable }: HoldRequest,
  ): Promise<machine.Idle | "gone" | Failure> {
    const refused = machine.open(entry.state, instruction, this.clock.monotonicMs());
    if (refused instanceof Failure) return refused;
    entry.holder = holder;
    entry.left = Promise.withResolvers();
    const unpaid = await unpayable();
    if (this.live.get(key) !== entry) return machine.ended();
    if (!unpaid && !holder.gone) return machine.open(entry.state, instruction, this.clock.monotonicMs());
    entry.holder = undefined;
    entry.left.resolve();
    entry.left = undefined;
    return unpaid ?? "gone";
  }

  /** Removes a session that could not be opened. */
  private discard(key: string, { slot, slots, left }: Entry): void {
    this.live.delete(key);
    if (slot !== undefined) slots?.give(slot);
    left?.resolve();
  }

  /** Records durably that the id was open. Not needed for an assigned id, whose form shows it. */
  private async record(session: SessionKey): Promise<Failure | undefined> {
    if (isAnonId(session.sessionId)) return undefined;
    const kept = await this.store.sessionOpen({ ...session, at: seenSeconds(this.clock) });
    return kept instanceof StoreDown ? recordDown(kept) : undefined;
  }

  /** The state of an id without a live session. */
  private async past(session: SessionKey): Promise<machine.SessionState | Failure> {
    // An assigned id belongs to a session that is over, on this node or another.
    if (isAnonId(session.sessionId)) return { kind: "expired" };
    const lastAt = await this.store.sessionLastAt(session);
    if (lastAt instanceof StoreDown) return recordDown(lastAt);
    // The record is deleted a day after the session's end (retention.ts).
    return lastAt === undefined ? { kind: "new" } : { kind: "expired" };
  }

  /** Puts a live session into its next state. */
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

  /** Takes capacity for a session that opens and is in the table already. */
  private takeCapacity(entry: Entry, sessionId: string): Failure | undefined {
    const named = !isAnonId(sessionId);
    const crowded = named ? this.openedTooMany(entry.accountId) : undefined;
    if (crowded) return crowded;
    entry.slot = entry.slots?.take(entry.accountId);
    const fits = entry.slots ? entry.slot !== undefined : this.withoutMemory() <= this.sessionsMax;
    if (fits) {
      if (named) this.opened.use(entry.accountId, 1);
      return undefined;
    }
    const retryAfterSeconds = secondsToFree(entry, this.live.values(), this.clock.monotonicMs());
    const message = `there is no capacity for another session; the first can come free in ${retryAfterSeconds} s, retry then`;
    return new Failure(ROBOT.no_replica_free, message, { retryAfterSeconds });
  }

  /** Each named session leaves a record for a day, whether it has a chunk or not. */
  private openedTooMany(accountId: string): Failure | undefined {
    const retryAfterSeconds = this.opened.secondsToWait(accountId);
    if (retryAfterSeconds === undefined) return undefined;
    const message = `the account has opened ${this.namedHourMax} sessions within an hour, its limit; go on in ${retryAfterSeconds} s, or use the sessions that are open`;
    return new Failure(EVERY.rate_limited, message, { retryAfterSeconds });
  }

  /** Sessions that the table's size bounds; those of models with memory are bounded by slots. */
  private withoutMemory(): number {
    const { size } = this.live;
    return size <= this.sessionsMax ? size : [...this.live.values()].filter(({ slots }) => !slots).length;
  }
}

function recordDown({ reason, outcomeUnknown }: StoreDown): Failure {
  // The session is not open, but its id may be used up.
  const advice = `retry with backoff${outcomeUnknown ? ", with a new session_id if this one answers 410" : ""}`;
  const message = `the record of sessions does not answer, nothing ran; ${advice}`;
  return new Failure(EVERY.metering_unavailable, message, { retryAfterSeconds: 1, detail: `store: ${reason}` });
}

function hasLostSlot({ slot, slots }: Entry): boolean {
  return slot !== undefined && slots?.isLost(slot) === true;
}

/** A connection that holds the session knows its step since it opened it; another request does not. */
function isOther(entry: Entry | undefined, { holder, keyId }: SessionName): boolean {
  return holder === undefined && entry?.driver !== undefined && entry.driver !== keyId;
}

function keyOf({ accountId, model }: SessionName, sessionId: string): string {
  return `${accountId}\n${model}\n${sessionId}`;
}
