/** Where the process stands between its start and its end, and what still runs. */

export class Lifecycle {
  draining = false;
  private running = 0;
  private idle = Promise.withResolvers<void>();
  private readonly end = new AbortController();

  /** Aborts when what still waits must be answered at once. */
  get over(): AbortSignal {
    return this.end.signal;
  }

  cut(): void {
    this.end.abort();
  }

  enter(): void {
    this.running += 1;
  }

  leave(): void {
    this.running -= 1;
    if (this.draining && this.running === 0) this.idle.resolve();
  }

  /** From now on nothing new is accepted; resolves when every running request is answered. */
  drain(): Promise<void> {
    this.draining = true;
    if (this.running === 0) this.idle.resolve();
    return this.idle.promise;
  }
}
