/** A connection without a network, as the server sees it: its client reads everything, unless `unread` or `drops` say otherwise. */
import type { Wire } from "../../../src/robot/socket/outbox.ts";

export class FakeWire implements Wire {
  readonly out: (string | Uint8Array)[] = [];
  closed: number | undefined;
  terminated = false;
  pings = 0;
  /** What its client does about a ping. */
  answer = () => {};
  /** Bytes that the client has not read. */
  unread = 0;
  drops = false;

  send(data: string | Uint8Array): number {
    if (this.drops) return 0;
    this.out.push(data);
    return data.length;
  }
  ping(): number {
    this.pings += 1;
    queueMicrotask(() => this.answer());
    return 1;
  }
  getBufferedAmount(): number {
    return this.unread;
  }
  close(code: number): void {
    this.closed ??= code;
  }
  terminate(): void {
    this.terminated = true;
  }
}
