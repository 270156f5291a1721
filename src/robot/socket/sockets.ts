/** The open WebSockets: how many there may be, and which to tell of a shutdown. */

import type { HttpDeps } from "../../http/deps.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import type { Durations } from "../../std/metrics.ts";
import { Permits } from "../../std/quota.ts";
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
  private readonly permits = new Permits(LIMITS.socketsMax, LIMITS.accountSocketsMax);
  private readonly open = new Set<Drained>();

  /** Open connections. */
  get size(): number {
    return this.permits.size;
  }

  /** Takes a permit for one more connection of the account; call the result to return it. */
  enter(accountId: string): (() => void) | Failure {
    const leave = this.permits.take(accountId);
    if (typeof leave === "function") return leave;
    return new Failure(ROBOT.engine_unavailable, "too many connections are open; close some, or retry with backoff");
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
