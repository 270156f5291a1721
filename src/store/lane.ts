/**
 * Group commit for PostgreSQL: what waits becomes one statement, and what comes meanwhile the next one. A group that got no
 * answer is sent again until its members' time is over: the functions say the same twice (hot.ts).
 */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import { type HotName, orderOf } from "./hot.ts";
import { type Pool, Unanswered } from "./pool.ts";
import { StoreDown } from "./store.ts";

interface Waiting {
  readonly order: object;
  readonly dueMs: number;
  readonly resolve: (outcome: unknown) => void;
  /** An earlier try may have been done. */
  unknown: boolean;
}

export class Lane {
  private waiting: Waiting[] = [];
  private running = false;

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
    private readonly durable: boolean,
  ) {}

  write(name: HotName, argument: unknown): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const dueMs = this.clock.monotonicMs() + LIMITS.storeAnswerMs;
    this.waiting.push({ order: orderOf(name, argument), dueMs, resolve, unknown: false });
    if (!this.running) void this.run();
    return promise;
  }

  private async run(): Promise<void> {
    this.running = true;
    // What is asked for in the same turn goes together.
    await Promise.resolve();
    while (this.waiting.length > 0) {
      const group = this.waiting.splice(0, LIMITS.storeGroupMax);
      const failed = await this.send(group);
      if (failed) await this.again(group, failed);
    }
    this.running = false;
  }

  private async send(group: readonly Waiting[]): Promise<Unanswered | undefined> {
    const orders = JSON.stringify(group.map(({ order }) => order));
    const [row] = await this.asked(orders);
    if (row instanceof Unanswered) return row;
    const outcomes = row?.outcomes as readonly string[];
    for (const [index, { resolve }] of group.entries()) resolve(outcomes[index]);
    return undefined;
  }

  private async asked(orders: string): Promise<readonly (Record<string, unknown> | Unanswered | undefined)[]> {
    const rows = await this.pool.rows("SELECT tendon_apply($1::text::jsonb, $2::boolean) AS outcomes", [
      orders,
      this.durable,
    ]);
    return rows instanceof Unanswered ? [rows] : rows;
  }

  /** Those who have time left go to the front; the others are told what is known. */
  private async again(group: readonly Waiting[], { reason, sent }: Unanswered): Promise<void> {
    const now = this.clock.monotonicMs() + LIMITS.storeBackoffMs;
    for (const member of group) member.unknown ||= sent;
    for (const { dueMs, resolve, unknown } of group) if (dueMs <= now) resolve(new StoreDown(reason, unknown));
    this.waiting.unshift(...group.filter(({ dueMs }) => dueMs > now));
    await new Promise<void>((done) => void this.clock.after(LIMITS.storeBackoffMs, done));
  }
}
