/** What goes to a client. Bun drops what a socket cannot take, silently: here every send is looked at. */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";

/** What of Bun's socket is used. */
export interface Wire {
  send(data: string | Uint8Array): number;
  getBufferedAmount(): number;
  close(code: number, reason?: string): void;
  terminate(): void;
}

export class Outbox {
  private isClosed = false;

  constructor(
    private readonly wire: Wire,
    private readonly clock: Clock,
  ) {}

  /** False: the client does not read what it is sent, and the connection must end. */
  send(data: string | Uint8Array): boolean {
    if (this.isClosed) return true;
    const sent = this.wire.send(data);
    return sent !== 0 && this.wire.getBufferedAmount() < LIMITS.socketUnsentBytesMax;
  }

  /** Behind what was sent; a client that reads nothing of it loses the connection after some seconds. */
  close(code: number, reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.wire.close(code, reason);
    this.clock.after(LIMITS.socketCloseMs, () => this.wire.terminate());
  }
}
