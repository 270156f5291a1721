/**
 * Group commit for PostgreSQL: the writes that wait become one statement, and those that arrive meanwhile the next one. A group
 * without an answer is sent again until the time of its members is over; a repeat has the same outcomes. A write's time begins when
 * it is asked for. A locked account delays only its writes, which go on in a separate lane.
 */
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { type Clock, sleep } from "../../std/clock.ts";
import type { Order } from "../domain.ts";
import { StoreDown } from "../store.ts";
import { type Pool, Unanswered } from "./pool.ts";
import { Waiting } from "./waiting.ts";

interface Member {
  readonly order: Order;
  readonly waiting: Waiting<string>;
}

export class Lane {
  private members: Member[] = [];
  private running = false;
  private sent = 0;
  /** The lanes of locked accounts, by account id. */
  private readonly apart = new Map<string, Lane>();

  constructor(
    /** `apart`: the connections of the lanes of locked accounts. */
    private readonly connections: { readonly pool: Pick<Pool, "rows">; readonly apart: Pick<Pool, "rows"> },
    private readonly clock: Clock,
    /** The function that runs a group. */
    private readonly apply: string,
    private readonly durable: boolean,
    private readonly emptied: () => void = () => {},
  ) {}

  /** The number of writes that wait or are under way. */
  get length(): number {
    return this.members.length + this.sent;
  }

  write(order: Order): Promise<string | StoreDown> {
    const waiting = new Waiting<string>(this.clock, LIMITS.storeAnswerMs);
    this.join({ order, waiting });
    return waiting.outcome;
  }

  private join(member: Member): void {
    const apart = this.apart.get(member.order.accountId);
    if (apart) {
      apart.join(member);
      return;
    }
    this.members.push(member);
    if (!this.running) this.run().catch((error: unknown) => this.broken(error));
  }

  /** A bug in this class leaves the outcome of every waiting write unknown. */
  private broken(error: unknown): void {
    for (const { waiting } of this.members.splice(0)) waiting.end(new StoreDown(String(error), true));
    this.sent = 0;
    this.running = false;
  }

  private async run(): Promise<void> {
    this.running = true;
    // Writes of the same turn of the event loop go together.
    await Promise.resolve();
    while (this.members.length > 0) {
      const group = this.members.splice(0, LIMITS.storeGroupMax).filter(({ waiting }) => !waiting.over);
      this.sent = group.length;
      if (group.length > 0) await this.send(group);
    }
    this.sent = 0;
    this.running = false;
    this.emptied();
  }

  /** Sends a group; members without an answer go to the front again. */
  private async send(group: readonly Member[]): Promise<void> {
    for (const { waiting } of group) waiting.tried();
    const orders = JSON.stringify(group.map(({ order }) => order));
    const text = `SELECT ${this.apply}($1::text::jsonb, $2::boolean) AS outcomes`;
    const answer = await this.connections.pool.rows(text, [orders, this.durable]);
    if (!(answer instanceof Unanswered)) {
      const outcomes = answer[0]?.outcomes as readonly string[];
      for (const [at, { waiting }] of group.entries()) waiting.end(present(outcomes[at], "an outcome for each order"));
      return;
    }
    for (const { waiting } of group) waiting.failed(answer);
    // A write that cannot be done must not fail the others.
    const wrong = answer.fault === "order";
    if (wrong && group.length === 1) return group[0]?.waiting.giveUp();
    if (wrong) {
      for (const member of group) if (!member.waiting.over) await this.send([member]);
      return;
    }
    const accounts = new Set(group.map(({ order }) => order.accountId));
    if (answer.fault === "lock" && accounts.size > 1) {
      for (const accountId of accounts) this.setApart(accountId);
      for (const member of [...group, ...this.members.splice(0)]) this.join(member);
      return;
    }
    this.members.unshift(...group);
    await sleep(this.clock, LIMITS.storeBackoffMs);
  }

  private setApart(accountId: string): void {
    const { connections, clock, apply, durable, apart } = this;
    const own = { pool: connections.apart, apart: connections.apart };
    apart.set(accountId, new Lane(own, clock, apply, durable, () => apart.delete(accountId)));
  }
}

interface Home {
  readonly lane: Lane;
  /** The number of writes without an outcome. */
  open: number;
}

/**
 * Several lanes. The waiting writes of an account stay in one lane; another account takes the lane that is least busy. So a robot does
 * not wait behind the group of an account that writes all the time. With many accounts each lane still groups.
 */
export class Lanes {
  private readonly lanes: readonly Lane[];
  /** The lane of each account that waits for a write. */
  private readonly homes = new Map<string, Home>();

  constructor(count: number, lane: () => Lane) {
    this.lanes = Array.from({ length: count }, lane);
  }

  async write(order: Order): Promise<string | StoreDown> {
    const { accountId } = order;
    const home = this.homes.get(accountId) ?? { lane: this.shortest(), open: 0 };
    this.homes.set(accountId, home);
    home.open += 1;
    try {
      return await home.lane.write(order);
    } finally {
      home.open -= 1;
      if (home.open === 0) this.homes.delete(accountId);
    }
  }

  private shortest(): Lane {
    return this.lanes.reduce((best, lane) => (lane.length < best.length ? lane : best));
  }
}
