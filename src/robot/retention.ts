/** Deletes the records of chunks whose retention (contract section 2) is over. */
import { LIMITS } from "../limits.ts";
import type { Log } from "../std/log.ts";
import type { SeenClock } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { RobotStore } from "./store/robot.ts";

/** Stored answers ten minutes after their session ended, all other records a day after. */
export async function forgetChunks(store: Pick<RobotStore, "chunksForget">, clock: SeenClock, log: Log): Promise<void> {
  const before = (ms: number) => Math.floor((clock.seenMs() - LIMITS.sessionIdleMs - ms) / 1000);
  const retention = { repliesBefore: before(LIMITS.replyKeptMs), recordsBefore: before(LIMITS.sessionEndedMs) };
  for (;;) {
    const outcome = await store.chunksForget(retention);
    if (outcome instanceof StoreDown) log.error("old records not forgotten", { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
