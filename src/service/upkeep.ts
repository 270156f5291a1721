/** The recurring work of a service: sessions and holds that expire, keys that are revoked, records whose retention is over. */
import { expireHolds, forgetUsage } from "../charge/upkeep.ts";
import { LIMITS } from "../limits.ts";
import { forgetResponses } from "../llm/record.ts";
import { forgetChunks } from "../robot/replay.ts";
import { compare, forgetUploads, sweep } from "../runs/sweep.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import type { Service } from "./build.ts";
import type { Store } from "./domains.ts";
import { keepSeenTime } from "./seen-time.ts";

export class Upkeep {
  private readonly timers: readonly (() => void)[];

  constructor(
    private readonly service: Service,
    private readonly store: Pick<Store, "charges" | "people" | "robot" | "llm" | "base" | "exclusive">,
    private readonly days: { readonly usageDays: number; readonly responseDays: number },
  ) {
    const { core, robot, llm, runs } = service;
    const { clock, keys, log } = core;
    const turn = (name: string, work: () => Promise<unknown>) => () =>
      work().catch((error: unknown) => log.error("upkeep fault", { work: name, stack: String(error) }));
    /** A turn that lasts longer than `ms` takes the place of the next ones. */
    const alone = (name: string, work: () => Promise<unknown>) => {
      const run = turn(name, work);
      let running = false;
      return async () => {
        if (running) return;
        running = true;
        await run().finally(() => {
          running = false;
        });
      };
    };
    const every = (ms: number, name: string, work: () => Promise<unknown>) => clock.every(ms, alone(name, work));
    const comparison = alone("comparison of blobs", () => compare(runs));
    this.timers = [
      clock.every(LIMITS.sweepMs, () => robot.sessions.sweep()),
      every(store.exclusive ? LIMITS.seenKeepOwnMs : LIMITS.seenKeepMs, "seen time", () =>
        keepSeenTime(clock, store.base),
      ),
      // Beside the last turn: one question without an answer must not hold up the next.
      clock.every(
        LIMITS.keysAskMs,
        turn("keys", () => keys.refresh()),
      ),
      every(LIMITS.keysFlushMs, "key uses", () => keys.flush()),
      every(LIMITS.holdsExpireMs, "holds", () => expireHolds(store.charges, clock, log)),
      // A store that no other process has: nobody asks whether this one lives, and nobody else queues jobs.
      // Beside the last turn: while it ends what a dead process left, this one still lives.
      ...(store.exclusive
        ? []
        : [
            clock.every(
              LIMITS.llmBeatMs,
              turn("owners", () => llm.owners.beat()),
            ),
          ]),
      clock.every(store.exclusive ? LIMITS.llmJobsLookOwnMs : LIMITS.llmJobsLookMs, () => llm.jobs.kick()),
      every(LIMITS.runMeterMs, "metering of runs", () => runs.meter.flush()),
      every(LIMITS.runSweepMs, "sweep of runs", () => sweep(runs)),
      clock.after(LIMITS.runCompareFirstMs, comparison),
      clock.every(LIMITS.runCompareMs, comparison),
      every(LIMITS.forgetMs, "retention", () => this.forget()),
    ];
  }

  /** Deletes what is old enough. */
  async forget(): Promise<void> {
    const { clock, log } = this.service.core;
    await forgetChunks(this.store.robot, clock, log);
    await forgetUsage(this.store.charges, clock, log, this.days.usageDays);
    await forgetResponses(this.service.llm.deps, this.days.responseDays);
    await forgetUploads(this.service.runs);
    await this.store.people.peopleForget({ now: seenSeconds(clock) });
  }

  stop(): void {
    for (const stopTimer of this.timers) stopTimer();
  }
}
