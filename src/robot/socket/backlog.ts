/**
 * Messages of one connection that wait while its session is being opened, and are then worked on one after another. What comes
 * before all of them are worked on waits behind them, so that their order stays.
 */
import type { Clock } from "../../std/clock.ts";
import { isObservation } from "./messages.ts";

/** A message as it came. */
export interface Arrived {
  readonly message: string | Uint8Array;
  /** Size of the message; of a text as UTF-8. */
  readonly bytes: number;
  /** Monotonic ms. */
  readonly arrivedMs: number;
}

interface Waiting {
  readonly arrived: Arrived;
  /** Only the verdict is kept: what JSON describes may take many times the memory of its text. */
  readonly observation: boolean;
}

/** For so long the messages are worked on before the event loop gets its turn, milliseconds. */
const TURN_MS = 5;

export class Backlog {
  private readonly queue: Waiting[] = [];
  private isHeld = false;
  private isWorking = false;

  constructor(
    private readonly clock: Clock,
    private readonly work: (arrived: Arrived) => void,
  ) {}

  /** Whether a message that comes now has to wait. */
  get waits(): boolean {
    return this.isHeld || this.isWorking;
  }

  /** Observations among the messages that wait. */
  get observations(): number {
    return this.queue.filter(({ observation }) => observation).length;
  }

  /** Reads the message, once, for whether it is an observation: a failure counts all of them at once. */
  push(arrived: Arrived): void {
    this.queue.push({ arrived, observation: isObservation(arrived.message) });
  }

  /** From here on messages wait. */
  hold(): void {
    this.isHeld = true;
  }

  /** Works on what waits, until the queue is empty or one of its messages has it held again. */
  async release(): Promise<void> {
    this.isHeld = false;
    if (this.isWorking) return;
    this.isWorking = true;
    try {
      await this.workAll();
    } finally {
      this.isWorking = false;
    }
  }

  private async workAll(): Promise<void> {
    let beganMs = this.clock.monotonicMs();
    for (let next = this.next(); next; next = this.next()) {
      this.work(next.arrived);
      if (this.clock.monotonicMs() - beganMs <= TURN_MS) continue;
      await new Promise((done) => setImmediate(done));
      beganMs = this.clock.monotonicMs();
    }
  }

  private next(): Waiting | undefined {
    return this.isHeld ? undefined : this.queue.shift();
  }
}
