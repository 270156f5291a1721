/** Counts requests and downloaded bytes of accounts in memory, and adds them to the store from time to time. */
import { monthOf } from "../std/calendar.ts";
import { type Clock, unixSeconds } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { Metered } from "../store/runs/records.ts";
import type { RunStore } from "../store/runs/runs.ts";
import { StoreDown } from "../store/store.ts";

export class Meter {
  private counted = new Map<string, Metered>();

  constructor(
    private readonly store: Pick<RunStore, "runsMeter">,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** An accepted request. */
  request(accountId: string): void {
    this.add(accountId, 0, 1);
  }

  /** A download that begins: so many bytes were asked for. */
  download(accountId: string, bytes: number): void {
    this.add(accountId, bytes, 0);
  }

  /** What the store does not take is counted again. */
  async flush(): Promise<void> {
    const metered = [...this.counted.values()];
    if (metered.length === 0) return;
    this.counted = new Map();
    const outcome = await this.store.runsMeter({ metered });
    if (!(outcome instanceof StoreDown)) return;
    this.log.error("requests of run storage not counted", { reason: outcome.reason });
    if (outcome.outcomeUnknown) return;
    for (const { accountId, month, downloaded, requests } of metered)
      this.addTo(month, accountId, downloaded, requests);
  }

  private add(accountId: string, downloaded: number, requests: number): void {
    this.addTo(monthOf(unixSeconds(this.clock)), accountId, downloaded, requests);
  }

  private addTo(month: number, accountId: string, downloaded: number, requests: number): void {
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
