/**
 * A request to an S3 store, which is bounded in time and repeated if it may pass the next time. A refused or broken connection is
 * tried again. A silent store is not, so that a caller waits for one span at most.
 */
import { S3Failure } from "./failure.ts";

const ATTEMPTS_MAX = 3;
/** The mean pause before the second attempt. The next one is three times as long, and each varies by half. */
const PAUSE_MS = 200;

export interface Patience {
  /** The longest time without a sign of life. */
  readonly silentMs: number;
  /** The longest time of the whole request. */
  readonly totalMs: number;
}

/** Ends one request when the store is silent for too long, or when the whole takes too long. */
export class Watch {
  private readonly controller = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly total: ReturnType<typeof setTimeout>;
  /** The span whose end has ended the request; undefined if none has. */
  silentMs: number | undefined;

  constructor(private readonly patience: Patience) {
    this.total = setTimeout(() => this.end(patience.totalMs), patience.totalMs);
    this.alive();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The store took or sent something. */
  alive(): void {
    clearTimeout(this.timer);
    if (this.signal.aborted) return;
    this.timer = setTimeout(() => this.end(this.patience.silentMs), this.patience.silentMs);
  }

  /** The store is not waited for. */
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
    this.silentMs = ms;
    this.stop();
  }
}

/** The result of the first attempt that succeeds; rejects with the `S3Failure` of the last one. The result may still use its watch. */
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

/** The pause is random, so that the nodes of a fleet do not return together. */
function pause(ms: number): Promise<void> {
  const [word = 0] = crypto.getRandomValues(new Uint32Array(1));
  return new Promise((resolve) => setTimeout(resolve, ms * (0.5 + word / 2 ** 32)));
}
