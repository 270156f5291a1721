/** Recurring work on charges: holds of nodes that died are released, old charges are summed up. */
import type { Log } from "../std/log.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { ChargeStore } from "./store/charges.ts";

/** Later than any hold expires but those that a record owns (`NO_EXPIRY` in charges.ts): those end with it. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** `all`: no other process has this store, so whatever is held belongs to one that ended. */
export async function expireHolds(
  store: Pick<ChargeStore, "holdsExpire">,
  clock: SeenClock,
  log: Log,
  which: "overdue" | "all" = "overdue",
): Promise<void> {
  const before = which === "all" ? NEVER : seenSeconds(clock);
  await untilDone(log, "holds not expired", () => store.holdsExpire({ before }));
}

/** Charges that were settled more than `days` ago; their sums stay in the ledger and in the days of usage. */
export async function forgetUsage(
  store: Pick<ChargeStore, "usageForget">,
  clock: SeenClock,
  log: Log,
  days: number,
): Promise<void> {
  const before = seenSeconds(clock) - days * 86_400;
  await untilDone(log, "old usage not summed up", () => store.usageForget({ before }));
}

/** In bounded parts, between which others write. */
async function untilDone(log: Log, failed: string, step: () => Promise<"done" | "more" | StoreDown>): Promise<void> {
  for (;;) {
    const outcome = await step();
    if (outcome instanceof StoreDown) log.error(failed, { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
