/** Money in order: what dead nodes hold is given back, what is old is summed up. */
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { type Store, StoreDown } from "../store/store.ts";

/** Far after every hold. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** `all`: nobody else has this store, so whoever held something is gone. */
export async function expireHolds(
  store: Pick<Store, "holdsExpire">,
  clock: Clock,
  log: Log,
  which: "overdue" | "all" = "overdue",
): Promise<void> {
  const before = which === "all" ? NEVER : Math.floor(clock.unixMs() / 1000);
  await untilDone(log, "holds not expired", () => store.holdsExpire({ before }));
}

/** Runs that were settled more than `days` ago; their sums stay in the ledger and in the days of usage. */
export async function forgetUsage(
  store: Pick<Store, "usageForget">,
  clock: Clock,
  log: Log,
  days: number,
): Promise<void> {
  const before = Math.floor(clock.unixMs() / 1000) - days * 86_400;
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
