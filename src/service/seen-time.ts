/** Seen time (std/seen-clock.ts) between the process and its store. */

import { unixSeconds } from "../std/clock.ts";
import type { ServiceClock } from "../std/seen-clock.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import type { BaseStore } from "../store/base.ts";
import { StoreDown } from "../store/store.ts";

/** The process goes on where the store's seen time stands; a new store's begins with the wall clock. */
export async function beginSeenTime(
  clock: ServiceClock,
  store: Pick<BaseStore, "timeBegin">,
): Promise<StoreDown | undefined> {
  const seconds = await store.timeBegin({ seconds: unixSeconds(clock) });
  if (seconds instanceof StoreDown) return seconds;
  clock.begin(seconds);
  return undefined;
}

/** What this process has seen pass becomes the store's; what another one has seen pass, this one's. A store that is down is told the next time. */
export async function keepSeenTime(clock: ServiceClock, store: Pick<BaseStore, "timeKeep">): Promise<void> {
  const seconds = await store.timeKeep({ seconds: seenSeconds(clock) });
  if (!(seconds instanceof StoreDown)) clock.reach(seconds);
}
