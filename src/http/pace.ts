/** Whether a body moves fast enough between this service and a client. Only the time that the client takes counts. */
export class Pace {
  private waitedMs = 0;
  private bytes = 0;

  /** In each span of `ms` at least `bytesMin` must move. */
  constructor(
    private readonly ms: number,
    private readonly bytesMin: number,
  ) {}

  /** Adds a wait for the client, and the bytes that it took or sent; false at the end of a span that had too few. */
  isKept(waitedMs: number, bytes: number): boolean {
    this.waitedMs += waitedMs;
    this.bytes += bytes;
    if (this.waitedMs < this.ms) return true;
    const kept = this.bytes >= this.bytesMin;
    [this.waitedMs, this.bytes] = [0, 0];
    return kept;
  }
}
