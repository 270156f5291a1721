/** The open WebSockets: how many there may be, and which to tell of a shutdown. */

import type { HttpDeps } from "../../http/deps.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import type { Durations } from "../../std/metrics.ts";
import type { RobotDeps } from "../deps.ts";
import { ROBOT } from "../errors.ts";
import type { HalfMessages } from "./half-messages.ts";

/** What a robot's socket works with. */
export interface RobotSocketDeps extends HttpDeps, RobotDeps {
  readonly sockets: Sockets;
  readonly halves: HalfMessages;
  /** From an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly episode: Durations };
}

interface Drained {
  drain(): void;
}

export class Sockets {
  private readonly counts = new Map<string, number>();
  private readonly open = new Set<Drained>();
  private count = 0;

  /** Open connections. */
  get size(): number {
    return this.count;
  }

  /** Takes a place for one more connection of the account; call the result once to give it back. */
  enter(accountId: string): (() => void) | Failure {
    const own = this.counts.get(accountId) ?? 0;
    if (this.count >= LIMITS.socketsMax || own >= LIMITS.accountSocketsMax) {
      return new Failure(ROBOT.engine_unavailable, "too many connections are open; close some, or retry with backoff");
    }
    this.count += 1;
    this.counts.set(accountId, own + 1);
    return () => {
      this.count -= 1;
      const left = (this.counts.get(accountId) ?? 0) - 1;
      if (left > 0) this.counts.set(accountId, left);
      else this.counts.delete(accountId);
    };
  }

  /** Call the result to remove it. */
  add(episode: Drained): () => void {
    this.open.add(episode);
    return () => {
      this.open.delete(episode);
    };
  }

  drain(): void {
    for (const episode of this.open) episode.drain();
  }
}
