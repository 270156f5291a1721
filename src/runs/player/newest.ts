/** Work for the newest of many wishes: one runs at a time, and of those that came meanwhile the last one runs next. */
export class Newest<T> {
  #next: { readonly wish: T } | undefined;
  #running = false;

  constructor(
    private readonly work: (wish: T) => Promise<void>,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** A newer wish waits. */
  get outdated(): boolean {
    return this.#next !== undefined;
  }

  ask(wish: T): void {
    this.#next = { wish };
    if (!this.#running) this.#run().catch(this.failed);
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#next !== undefined) {
        const { wish } = this.#next;
        this.#next = undefined;
        await this.work(wish);
      }
    } finally {
      this.#running = false;
    }
  }
}
