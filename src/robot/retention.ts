/** Forgetting what chunks left behind, once nobody may ask for it any more. */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import type { RobotStore } from "../store/robot/robot.ts";
import { StoreDown } from "../store/store.ts";

/** Replies of sessions that ended ten minutes ago, and records of those that ended a day ago. */
export async function forgetChunks(store: Pick<RobotStore, "chunksForget">, clock: Clock, log: Log): Promise<void> {
  const before = (ms: number) => Math.floor((clock.unixMs() - LIMITS.sessionIdleMs - ms) / 1000);
  const retention = { repliesBefore: before(LIMITS.replyKeptMs), recordsBefore: before(LIMITS.sessionEndedMs) };
  for (;;) {
    const outcome = await store.chunksForget(retention);
    if (outcome instanceof StoreDown) log.error("old records not forgotten", { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
