/** Deletes responses whose retention is over. */
import type { Log } from "../std/log.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { LlmStore } from "./store/llm.ts";

/** Those that ended more than `days` ago, in bounded parts, between which others write. */
export async function forgetResponses(
  store: Pick<LlmStore, "responsesForget">,
  clock: SeenClock,
  log: Log,
  days: number,
): Promise<void> {
  const before = seenSeconds(clock) - days * 86_400;
  for (;;) {
    const outcome = await store.responsesForget({ before });
    if (outcome instanceof StoreDown) log.error("old responses not deleted", { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
