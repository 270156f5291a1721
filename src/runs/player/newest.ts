/** Runs one piece of work at a time. Of the requests that arrive meanwhile only the newest one runs next. */
export class Newest<T> {
  #next: { readonly request: T } | undefined;
  #running = false;

  constructor(
    private readonly work: (request: T) => Promise<void>,
    private readonly failed: (error: unknown) => void,
  ) {}

  get outdated(): boolean {
    return this.#next !== undefined;
  }

  ask(request: T): void {
    this.#next = { request };
    if (!this.#running) this.#run().catch(this.failed);
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#next !== undefined) {
        const { request } = this.#next;
        this.#next = undefined;
        await this.work(request);
      }
    } finally {
      this.#running = false;
    }
  }
}
