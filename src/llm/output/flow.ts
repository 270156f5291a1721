/**
 * The events of one reader, printed when the reader takes them. For a slow reader the waiting deltas are joined, so that no more waits
 * than the answer itself, which is kept anyway. No event is skipped.
 */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import type { Timer } from "../../std/slices.ts";
import { DONE, eventText, joined, KEEPALIVE, type ResponsesEvent } from "./events.ts";

/** Waiting events from which on deltas are joined. */
const JOINED_FROM = 64;

const encoder = new TextEncoder();

export class EventFlow {
  private waiting: ResponsesEvent[] = [];
  /** Index in `waiting` of the first event that is not taken. */
  private next = 0;
  private sequence = 0;
  private ended: "done" | "cut" | undefined;
  /** The reader has not left. */
  open = true;
  private silent = false;
  private wake: (() => void) | undefined;
  private readonly stopTicks: () => void;

  constructor(
    clock: Clock,
    private readonly left: () => void = () => {},
    /** Prints events. */
    private readonly timed: Timer = (print) => print(),
    /** Events up to this number are not sent. */
    private readonly after = -1,
  ) {
    this.stopTicks = clock.every(LIMITS.llmKeepaliveMs, () => {
      this.silent = true;
      this.wake?.();
    });
  }

  push(event: ResponsesEvent): void {
    if (!this.open || this.ended) return;
    const slow = this.waiting.length - this.next >= JOINED_FROM;
    if (!slow || !joined(this.waiting.at(-1), event)) this.waiting.push(event);
  }

  /** Sends what was pushed. Called once after several events. */
  flush(): void {
    this.wake?.();
  }

  /** `done`: ends with `[DONE]`; `cut`: ends after an error event, without it. */
  end(how: "done" | "cut"): void {
    this.ended ??= how;
    this.flush();
  }

  /** The next events, each complete; undefined at the end. */
  async pull(): Promise<Uint8Array | undefined> {
    while (this.open) {
      const text = this.timed(() => this.taken());
      if (text !== "") {
        this.silent = false;
        return encoder.encode(text);
      }
      if (this.ended) return undefined;
      if (this.silent) {
        this.silent = false;
        return encoder.encode(KEEPALIVE);
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.wake = resolve;
      await promise;
      this.wake = undefined;
    }
    return undefined;
  }

  /** Called when the reader has left, or has all events. */
  async close(): Promise<void> {
    if (!this.open) return;
    this.open = false;
    this.stopTicks();
    this.waiting = [];
    this.wake?.();
    this.left();
  }

  private taken(): string {
    let text = "";
    while (this.next < this.waiting.length && text.length < LIMITS.llmPieceCharsMax) {
      const event = this.waiting[this.next];
      this.next += 1;
      if (!event) break;
      if (this.sequence > this.after) text += eventText(event, this.sequence);
      this.sequence += 1;
    }
    if (this.next < this.waiting.length) return text;
    this.waiting = [];
    this.next = 0;
    if (this.ended !== "done") return text;
    this.ended = "cut";
    return text + DONE;
  }
}
