/**
 * A request to an S3 store, bounded in time, and repeated where it may pass the next time. A refused or broken connection is tried
 * again at once; a store that is silent is not, so that whoever waits hears of it within one span.
 */
import { S3Failure } from "./failure.ts";

const ATTEMPTS_MAX = 3;
/** Before the second attempt, and three times as long before the third; each is drawn from half to one and a half of it. */
const PAUSE_MS = 200;

/** How long a request may last. */
export interface Patience {
  /** Without a sign of life. */
  readonly silentMs: number;
  /** In all. */
  readonly totalMs: number;
}

/** Ends one request when the store is silent for too long, or when all of it takes too long. */
export class Watch {
  private readonly controller = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly total: ReturnType<typeof setTimeout>;
  private late: number | undefined;

  constructor(private readonly patience: Patience) {
    this.total = setTimeout(() => this.end(patience.totalMs), patience.totalMs);
    this.alive();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The span that passed, if that ended the request. */
  get silentMs(): number | undefined {
    return this.late;
  }

  /** The store took or gave something. */
  alive(): void {
    clearTimeout(this.timer);
    if (this.signal.aborted) return;
    this.timer = setTimeout(() => this.end(this.patience.silentMs), this.patience.silentMs);
  }

  /** The time that passes is not the store's. */
  pause(): void {
    clearTimeout(this.timer);
    clearTimeout(this.total);
  }

  /** Ends the request if it still runs. */
  stop(): void {
    this.pause();
    this.controller.abort();
  }

  private end(ms: number): void {
    this.late = ms;
    this.stop();
  }
}

/** The result of one of a few attempts; rejects with the `S3Failure` of the last. What succeeded may still use its watch. */
export async function attempted<T>(
  operation: string,
  patience: Patience,
  attempt: (watch: Watch) => Promise<T>,
): Promise<T> {
  for (let count = 1; ; count += 1) {
    const watch = new Watch(patience);
    try {
      const result = await attempt(watch);
      watch.pause();
      return result;
    } catch (error) {
      watch.stop();
      const failure = error instanceof S3Failure ? error : new S3Failure(operation, error, watch.silentMs);
      if (!failure.passing || count === ATTEMPTS_MAX) throw failure;
      await pause(PAUSE_MS * 3 ** (count - 1));
    }
  }
}

/** Drawn at random, so that the nodes of a fleet do not come back together. */
function pause(ms: number): Promise<void> {
  const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
  return new Promise((resolve) => setTimeout(resolve, ms * (0.5 + word / 2 ** 32)));
}
