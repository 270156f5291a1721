/** Messages to a client, and whether it is still there. Bun silently drops what a socket cannot take, so the result of every send is checked. */
import type { ServerWebSocket } from "bun";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";

/** The part of Bun's socket that is used. */
export type Wire = Pick<ServerWebSocket, "send" | "getBufferedAmount" | "ping" | "close" | "terminate">;

export class Outbox {
  private isClosed = false;

  constructor(
    private readonly wire: Wire,
    private readonly clock: Clock,
  ) {}

  /** False if the client does not read and the connection must end. */
  send(data: string | Uint8Array): boolean {
    if (this.isClosed) return true;
    const sent = this.wire.send(data);
    return sent !== 0 && this.wire.getBufferedAmount() < LIMITS.socketUnsentBytesMax;
  }

  /** Any WebSocket library answers by itself. */
  ping(): void {
    if (!this.isClosed) this.wire.ping();
  }

  /** Closes after what was sent; the connection of a client that does not read it is terminated some seconds later. */
  close(code: number, reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.wire.close(code, reason);
    this.clock.after(LIMITS.socketCloseMs, () => this.wire.terminate());
  }
}

/** Finds out whether the client is still there: a ping asks, a pong or any message answers. */
export class Presence {
  /** The question that waits for its answer. */
  private asked: { readonly answer: PromiseWithResolvers<boolean>; readonly disarm: () => void } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ping: () => void,
  ) {}

  /** False when nothing came for `ms`, or the connection has ended meanwhile. All questions share one answer. */
  ask(ms: number): Promise<boolean> {
    if (!this.asked) {
      this.asked = { answer: Promise.withResolvers(), disarm: this.clock.after(ms, () => this.settle(false)) };
      this.ping();
    }
    return this.asked.answer.promise;
  }

  /** Something came, or the connection has ended. */
  settle(isThere: boolean): void {
    const { asked } = this;
    this.asked = undefined;
    asked?.disarm();
    asked?.answer.resolve(isThere);
  }
}
