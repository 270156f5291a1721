/** How long an account waits for a place for one more session. */
import { LIMITS } from "../../limits.ts";
import type { SessionSlots } from "../exclusive.ts";
import { type Busy, expiresMs, type Idle } from "./machine.ts";

/** What of a live session the answer needs. */
interface Live {
  readonly accountId: string;
  readonly state: Idle | Busy;
  readonly slots: SessionSlots | undefined;
  readonly slot: number | undefined;
}

/**
 * Whole seconds, at least 1: until so many sessions as are missing can have ended, or all of the account's own, since an account
 * without a session also gets a slot that is kept.
 */
export function secondsToFree({ accountId, slots }: Live, live: Iterable<Live>, nowMs: number): number {
  const beside = [...live].filter((one) => one.slots === slots && hasPlace(one));
  const ends = beside
    .filter(givesPlace)
    .map(({ state }) => earliestEndMs(state, nowMs))
    .toSorted((a, b) => a - b);
  const own = beside.filter((one) => one.accountId === accountId);
  const ownEndMs = Math.max(...own.map(({ state }) => earliestEndMs(state, nowMs)));
  const missing = slots?.missing(accountId) ?? 1;
  const keptIsFree = own.length > 0 && slots !== undefined && slots.freeCount > 0;
  const dueMs = Math.min(ends[missing - 1] ?? Infinity, keptIsFree ? ownEndMs : Infinity, nowMs + LIMITS.sessionIdleMs);
  return Math.max(1, Math.ceil((dueMs - nowMs) / 1000));
}

/** Without slots each session has a place. */
function hasPlace({ slots, slot }: Live): boolean {
  return slots === undefined || slot !== undefined;
}

/** Whether its end makes room for another one. */
function givesPlace({ slots, slot }: Live): boolean {
  return slots === undefined || slot === undefined || slots.comesFree(slot);
}

/** Monotonic ms when a session can give its place back: at once when it only waits for its last chunk. */
function earliestEndMs(state: Idle | Busy, nowMs: number): number {
  if (state.kind === "idle") return expiresMs(state);
  return state.ending ? nowMs : nowMs + LIMITS.sessionIdleMs;
}
