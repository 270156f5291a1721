/** The right to run one chunk of a session; given back once, by `commit` or `fail`. */

import { assert } from "../../std/assert.ts";
import type { Clock } from "../../std/clock.ts";
import type { Failure } from "../../std/failure.ts";
import * as machine from "./machine.ts";

/** The right to run one chunk of a session. */
export interface Ticket {
  /** The client's id, or the assigned `anon-` id. */
  readonly sessionId: string;
  /** Whether the client named the session. */
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

/** Reads the state through the entry: the session may be ended while its chunk runs. */
export class SessionTicket implements Ticket {
  readonly named = true;
  private open = true;

  constructor(
    readonly sessionId: string,
    readonly step: number,
    private readonly entry: { readonly state: machine.Idle | machine.Busy; readonly slot: number | undefined },
    private readonly table: {
      readonly admit: () => Failure | undefined;
      readonly end: (next: machine.SessionState) => void;
      readonly answered: () => void;
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
    this.table.answered();
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
