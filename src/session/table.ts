/**
 * All live robot sessions, and the ids that lately ended. Keyed by account, model and `session_id`.
 * A request takes a ticket (`begin`) and gives it back exactly once (`commit` or `fail`).
 */
import { Failure } from "../error.ts";
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import type { Clock } from "../std/clock.ts";
import { isAnonId, makeId } from "../std/ids.ts";
import * as machine from "./machine.ts";

export interface SessionName {
  readonly accountId: string;
  readonly model: string;
  /** The client's id; undefined: the request is a session of its own that cannot go on. */
  readonly sessionId: string | undefined;
}

/** The right to run one chunk of a session. */
export interface Ticket {
  /** The client's id, or the assigned `anon-` id. */
  readonly sessionId: string;
  /** Whether the client named the session. */
  readonly named: boolean;
  readonly step: number;
  /** Capacity, asked after all other checks: `no_replica_free` when a new session finds no place. */
  admit(): Failure | undefined;
  /** The chunk goes out: step + 1. */
  commit(): void;
  /** Nothing goes out: the step stays. */
  fail(): void;
}

interface TableOptions {
  readonly clock: Clock;
  readonly sessionsMax?: number;
  readonly endedMax?: number;
}

export class SessionTable {
  /** In the order in which they became idle, oldest first; busy ones stand anywhere. */
  private readonly live = new Map<string, machine.Idle | machine.Busy>();
  /** Ended ids with the moment of their end, oldest first. */
  private readonly ended = new Map<string, number>();
  private readonly clock: Clock;
  private readonly sessionsMax: number;
  private readonly endedMax: number;

  constructor({ clock, sessionsMax = LIMITS.sessionsMax, endedMax = LIMITS.sessionsEndedMax }: TableOptions) {
    this.clock = clock;
    this.sessionsMax = sessionsMax;
    this.endedMax = endedMax;
  }

  /** Sessions that are idle or busy. */
  get size(): number {
    return this.live.size;
  }

  /** The session stage up to `image_count_mismatch`; a ticket holds the session until it is given back. */
  begin(name: SessionName, request: machine.SessionRequest, counts: machine.ImageCounts): Ticket | Failure {
    this.sweep();
    if (name.sessionId === undefined) return this.beginAlone(request, counts);
    const key = `${name.accountId}\n${name.model}\n${name.sessionId}`;
    const busy = machine.begin(this.state(key, name.sessionId), request, counts);
    if (busy instanceof Failure) return busy;
    this.live.set(key, busy);
    return this.ticket(name.sessionId, key, busy);
  }

  /** Ends sessions that idled too long and forgets ids that ended long ago. Called by every `begin`, and by a timer. */
  sweep(): void {
    const now = this.clock.monotonicMs();
    for (const [key, state] of this.live) {
      if (state.kind === "busy") continue;
      if (!machine.expired(state, now)) break;
      this.live.delete(key);
      this.ended.set(key, now);
    }
    for (const [key, sinceMs] of this.ended) {
      if (now - sinceMs < LIMITS.sessionEndedMs && this.ended.size <= this.endedMax) break;
      this.ended.delete(key);
    }
  }

  private state(key: string, sessionId: string): machine.SessionState {
    // An assigned id belongs to a request that is over, wherever it was made.
    if (isAnonId(sessionId) || this.ended.has(key)) return { kind: "expired" };
    return this.live.get(key) ?? { kind: "new" };
  }

  private beginAlone(request: machine.SessionRequest, counts: machine.ImageCounts): Ticket | Failure {
    const failure = machine.beginAlone(request, counts);
    if (failure) return failure;
    return {
      sessionId: makeId("anon-", this.clock),
      named: false,
      step: 0,
      admit: () => undefined,
      commit: () => {},
      fail: () => {},
    };
  }

  private ticket(sessionId: string, key: string, busy: machine.Busy): Ticket {
    const end = (next: machine.SessionState) => {
      assert(this.live.get(key) === busy, "a ticket is given back once");
      // Deleted first, so that it stands last in the order of idleness.
      this.live.delete(key);
      if (next.kind === "idle") this.live.set(key, next);
    };
    return {
      sessionId,
      named: true,
      step: busy.step,
      admit: () => (busy.before === undefined ? this.full() : undefined),
      commit: () => end(machine.commit(busy, this.clock.monotonicMs())),
      fail: () => end(machine.fail(busy, this.clock.monotonicMs())),
    };
  }

  /** The asking session already stands in the table. */
  private full(): Failure | undefined {
    if (this.live.size <= this.sessionsMax) return undefined;
    const retryAfterSeconds = this.secondsToFree();
    return new Failure(
      "no_replica_free",
      `there is no place for another session; the first one comes free in ${retryAfterSeconds} s at the earliest, retry then`,
      { retryAfterSeconds },
    );
  }

  private secondsToFree(): number {
    const now = this.clock.monotonicMs();
    for (const state of this.live.values()) {
      if (state.kind === "idle") return Math.max(1, Math.ceil((state.sinceMs + LIMITS.sessionIdleMs - now) / 1000));
    }
    return 1;
  }
}
