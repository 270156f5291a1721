/** A sign of life on a terminal while there is nothing else to show: a turning mark, what is waited for, and since when. */
import type { Clock } from "../../std/clock.ts";

const MARKS = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TURN_MS = 100;
const CLEAR_LINE = "\r\u001b[K";

export class Spinner {
  private readonly stopTurns: () => void;
  private turns = 0;

  constructor(
    private readonly clock: Clock,
    /** What is waited for. */
    public words: string,
    private readonly write: (text: string) => void,
  ) {
    const sinceMs = clock.monotonicMs();
    this.stopTurns = clock.every(TURN_MS, () => this.turn(sinceMs));
  }

  /** Takes the line away. */
  stop(): void {
    this.stopTurns();
    if (this.turns > 0) this.write(CLEAR_LINE);
    this.turns = 0;
  }

  private turn(sinceMs: number): void {
    const seconds = Math.floor((this.clock.monotonicMs() - sinceMs) / 1000);
    this.write(`${CLEAR_LINE}${MARKS[this.turns % MARKS.length]} ${this.words}, ${seconds} s`);
    this.turns += 1;
  }
}
