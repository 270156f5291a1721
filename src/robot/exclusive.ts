/**
 * Everything that is exclusive or counted per process today. Each has a small interface here, implemented in this process's
 * memory; leases and capacity that several nodes share would take its place.
 */
import type { Failure } from "../std/failure.ts";
import type { EarlySlots, Permit } from "./admission.ts";
import type { ImageCounts, SessionRequest } from "./session/machine.ts";
import type { Holder, HoldRequest, SessionName } from "./session/table.ts";
import type { Ticket } from "./session/ticket.ts";
import type { SessionKey } from "./store/records.ts";

/** Live sessions. */
export interface Sessions {
  /** Sessions that are idle or busy. */
  readonly size: number;
  /** Runs the session's checks, up to `image_count_mismatch`. The session is busy until the ticket's `commit` or `fail`. */
  begin(
    name: SessionName,
    request: SessionRequest,
    counts: ImageCounts,
    slots?: SessionSlots,
  ): Promise<Ticket | Failure>;
  /** Gives the session to one connection alone until `release`. `gone`: the connection closed while it waited. */
  hold(request: HoldRequest): Promise<{ readonly sessionId: string; readonly step: number } | "gone" | Failure>;
  /** Whether the session was never asked for an observation of this id, where that is known without the store. */
  isFirst(session: SessionKey, observationId: string): boolean;
  /** The connection lets the session go: `end` ends it, `stay` leaves it to the next one for as long as a session may idle. */
  release(name: SessionName & { readonly sessionId: string; readonly holder: Holder }, then: "end" | "stay"): void;
  /** The client ends its session; nothing happens when there is none. */
  end(name: SessionName & { readonly sessionId: string }): void;
  /** Ends the sessions whose slots are lost. */
  loseSlots(slots: SessionSlots): void;
  /** Ends sessions that idled too long. */
  sweep(): void;
}

type Claimed = { readonly kind: "claim"; release(): void } | { readonly kind: "taken"; readonly digest: Uint8Array };

/** Ids of the observations that are running. */
export interface RunningIds {
  readonly size: number;
  /** Takes the id until `release`, or says with which content it runs already. */
  claim(key: string, digest: Uint8Array): Claimed | Promise<Claimed>;
}

/** Run and frame slots of the engine, accounts in turns. */
export interface RunSlots {
  /** Observations that hold slots, and those that wait for some. */
  readonly held: number;
  readonly waiting: number;
  /** One run with `frames` frames of a model, now or when its turn comes; `engine_unavailable` when too many wait. */
  take(accountId: string, model: string, frames: number): Permit | Failure;
  /** Slots for frames that arrive before their observation; undefined when there are none to spare. */
  takeEarly(accountId: string, model: string, frames: number): EarlySlots | undefined;
}

/** Session slots of a model with episode memory. */
export interface SessionSlots {
  readonly freeCount: number;
  /**
   * A slot on the replica with the fewest sessions. Undefined when all are taken, and for an account that has one already while
   * only the last eighth is free: that is kept for accounts that have none.
   */
  take(accountId: string): number | undefined;
  /** How many slots must come free before the account gets one; 0: it may take one now. */
  missing(accountId: string): number;
  /** Forgets what the slot's memory holds. */
  give(slot: number): void;
  /** The replica is out: its slots are neither given any more nor taken back. */
  lose(replica: number): void;
  isLost(slot: number): boolean;
  /** Whether a session can get the slot when the one that has it ends. */
  comesFree(slot: number): boolean;
  /** No session gets a slot of the replica any more. Resolves when none has one; those that do go on as long as they live. */
  drain(replica: number): Promise<void>;
  /** Sessions get slots of the replica again. */
  resume(replica: number): void;
}

/** The ids that run in this process. */
export class LocalIds implements RunningIds {
  /** Digest of each observation, by key. */
  private readonly digests = new Map<string, Uint8Array>();

  get size(): number {
    return this.digests.size;
  }

  claim(key: string, digest: Uint8Array): Claimed {
    const other = this.digests.get(key);
    if (other) return { kind: "taken", digest: other };
    this.digests.set(key, digest);
    // Released more than once, it must not release what another request has claimed meanwhile.
    const release = () => {
      if (this.digests.get(key) === digest) this.digests.delete(key);
    };
    return { kind: "claim", release };
  }
}
