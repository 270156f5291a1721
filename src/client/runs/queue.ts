/** Jobs, some at once, until all are done or the first one fails. */
import { Problem } from "../../std/problem.ts";

/** May put more jobs into the queue. */
export type Job = () => Promise<Problem | undefined>;

export class Queue {
  private readonly waiting: Job[] = [];
  private running = 0;
  private failure: Problem | undefined;
  private readonly ended = Promise.withResolvers<Problem | undefined>();

  constructor(
    private readonly parallel: number,
    /** Called at the first failure: what runs has no purpose any more. */
    private readonly failed: () => void = () => {},
  ) {}

  add(...jobs: readonly Job[]): void {
    this.waiting.push(...jobs);
  }

  /** Before all others, so that what is begun is finished first. */
  addFirst(...jobs: readonly Job[]): void {
    this.waiting.unshift(...jobs);
    this.start();
  }

  /** Runs all jobs; the first problem, once nothing runs any more. */
  async run(): Promise<Problem | undefined> {
    this.start();
    return await this.ended.promise;
  }

  private start(): void {
    while (this.running < this.parallel && this.failure === undefined) {
      const job = this.waiting.shift();
      if (job === undefined) break;
      this.running += 1;
      job().then((outcome) => this.end(outcome), this.ended.reject);
    }
    if (this.running === 0) this.ended.resolve(this.failure);
  }

  private end(outcome: Problem | undefined): void {
    this.running -= 1;
    if (outcome instanceof Problem && this.failure === undefined) {
      this.failure = outcome;
      this.failed();
    }
    this.start();
  }
}
