/** The shutdown of the service, and the number of requests that still run. */

export class Lifecycle {
  draining = false;
  private running = 0;
  private idle = Promise.withResolvers<void>();
  private readonly end = new AbortController();

  /** Aborts when requests that still wait must be answered at once. */
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

  /** Accepts nothing new from now on; resolves when no request runs any more. */
  drain(): Promise<void> {
    this.draining = true;
    if (this.running === 0) this.idle.resolve();
    return this.idle.promise;
  }
}
