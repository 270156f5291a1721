/**
 * The connections of a store. Each lane of holds and of settlements has its own. So one late statement (a locked row, a lost packet,
 * a slow query) drops no settlement on another connection.
 */
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Lane, Lanes } from "./lane.ts";
import { Pool } from "./pool.ts";

/** Writes of one kind: those in lanes, and the transactions, whose connections also carry the orders of locked accounts. */
interface Writing {
  readonly lanes: Lanes;
  readonly pool: Pool;
}

export class Connections {
  readonly reads: Pool;
  /** Writes that need not be durable, such as holds. */
  readonly quick: Writing;
  readonly durable: Writing;
  private readonly pools: Pool[] = [];

  constructor(
    private readonly url: string,
    private readonly clock: Clock,
    /** The function that runs a group. */
    private readonly apply: string,
    /** Called after the loss of a connection. */
    private readonly lost: () => void,
  ) {
    this.reads = this.pool(LIMITS.storeReadConnectionsMax);
    this.quick = this.writing(LIMITS.storeQuickConnectionsMax, false);
    this.durable = this.writing(LIMITS.storeDurableConnectionsMax, true);
  }

  /** Opens a connection of each kind, all of the lanes, so that the first robot does not wait for them. */
  async warm(): Promise<void> {
    await Promise.all(this.pools.map((pool) => pool.rows("SELECT 1", [])));
  }

  async close(): Promise<void> {
    await Promise.all(this.pools.map((pool) => pool.close()));
  }

  private writing(connections: number, durable: boolean): Writing {
    const { clock, apply } = this;
    const pool = this.pool(connections);
    const lane = () => new Lane({ pool: this.pool(1), apart: pool }, clock, apply, durable);
    return { pool, lanes: new Lanes(LIMITS.storeLanes, lane) };
  }

  private pool(connections: number): Pool {
    const pool = new Pool(this.url, this.clock, { connections, lost: this.lost });
    this.pools.push(pool);
    return pool;
  }
}
