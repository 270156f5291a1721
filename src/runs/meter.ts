/** Counts requests and downloaded bytes of accounts in memory, and adds them to the store from time to time. */
import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { Metered } from "./store/records.ts";
import type { RunStore } from "./store/runs.ts";

/** The counts that the store adds in one step. The number makes a repeat harmless. */
interface Flush {
  readonly flush: number;
  readonly metered: readonly Metered[];
}

export class Meter {
  private counted = new Map<string, Metered>();
  private readonly owner: string;
  private flushes = 0;
  /** A flush that the store has not confirmed. */
  private unconfirmed: Flush | undefined;
  private running: Promise<void> | undefined;
  private following: Promise<void> | undefined;

  constructor(
    private readonly store: Pick<RunStore, "runsMeter">,
    private readonly clock: SeenClock,
    private readonly log: Log,
  ) {
    this.owner = makeId("node_", clock);
  }

  request(accountId: string): void {
    this.add(accountId, 0, 1);
  }

  /** Counts the requested bytes of a download that begins. */
  download(accountId: string, bytes: number): void {
    this.add(accountId, bytes, 0);
  }

  /** Sends all counts to the store. One flush follows the other; all calls during a flush share the next one. */
  flush(): Promise<void> {
    if (!this.running) {
      this.running = this.send().finally(() => {
        this.running = undefined;
      });
      return this.running;
    }
    this.following ??= this.running
      .finally(() => {
        this.following = undefined;
      })
      .then(() => this.flush());
    return this.following;
  }

  /** An unconfirmed flush goes first, under its number. */
  private async send(): Promise<void> {
    if (this.unconfirmed && !(await this.confirm(this.unconfirmed))) return;
    if (this.counted.size === 0) return;
    this.flushes += 1;
    this.unconfirmed = { flush: this.flushes, metered: [...this.counted.values()] };
    this.counted = new Map();
    await this.confirm(this.unconfirmed);
  }

  private async confirm(flush: Flush): Promise<boolean> {
    const { owner, clock, store, log } = this;
    const outcome = await store.runsMeter({ owner, ...flush, at: seenSeconds(clock) });
    if (outcome instanceof StoreDown) {
      log.error("requests of run storage not counted yet", { reason: outcome.reason });
      return false;
    }
    this.unconfirmed = undefined;
    return true;
  }

  private add(accountId: string, downloaded: number, requests: number): void {
    const month = monthOf(unixSeconds(this.clock));
    const key = `${accountId}\n${month}`;
    const old = this.counted.get(key);
    this.counted.set(key, {
      accountId,
      month,
      downloaded: (old?.downloaded ?? 0) + downloaded,
      requests: (old?.requests ?? 0) + requests,
    });
  }
}
