/** The right to one chunk of a session; given back once, by `commit` or `fail`. */
import { assert } from "../../std/assert.ts";
import type { Failure } from "../../std/failure.ts";
import type { Busy, Idle } from "./machine.ts";

export interface Ticket {
  /** The client's id, or the assigned `anon-` id. */
  readonly sessionId: string;
  /** The client has named the session. */
  readonly named: boolean;
  readonly step: number;
  /** Slot of the episode's memory; undefined before `admit`, and always on models without memory. */
  readonly slot: number | undefined;
  /** Capacity, the last check: `no_replica_free` when there is no slot for a new session. */
  admit(): Failure | undefined;
  /** The chunk is answered: step + 1. */
  commit(): void;
  /** The chunk is not answered: the step stays. */
  fail(): void;
}

/** The ticket of a request without `session_id`, whose session is over with its answer. */
export function ticketAlone(sessionId: string): Ticket {
  const nothing = () => {};
  return { sessionId, named: false, step: 0, slot: undefined, admit: () => undefined, commit: nothing, fail: nothing };
}

/** Reads state and slot through the entry: the session may be ended while its chunk is computed. */
export function ticketOf(
  entry: { readonly state: Idle | Busy; readonly slot: number | undefined },
  { sessionId, step, admit }: Pick<Ticket, "sessionId" | "step" | "admit">,
  settle: (busy: Busy, isAnswered: boolean) => void,
): Ticket {
  let isOpen = true;
  const end = (isAnswered: boolean) => {
    const { state } = entry;
    assert(isOpen && state.kind === "busy", "a ticket is given back once");
    isOpen = false;
    settle(state, isAnswered);
  };
  return {
    ...{ sessionId, named: true, step, admit },
    get slot() {
      return entry.slot;
    },
    commit: () => end(true),
    fail: () => end(false),
  };
}
