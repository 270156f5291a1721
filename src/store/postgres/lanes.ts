/**
 * Several lanes. The waiting writes of an account stay in one lane; another account takes the lane that is least busy. So a robot does
 * not wait behind the group of an account that writes all the time. With many accounts each lane still groups.
 */
import type { Order } from "../domain.ts";
import type { StoreDown } from "../store.ts";
import type { Lane } from "./lane.ts";

interface Home {
  readonly lane: Lane;
  /** Writes without an outcome. */
  open: number;
}

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
