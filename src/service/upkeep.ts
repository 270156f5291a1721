/** The recurring work of a service: sessions and holds that expire, keys that are revoked, records whose retention is over. */
import { expireHolds, forgetUsage } from "../charge/charges.ts";
import { LIMITS } from "../limits.ts";
import { forgetResponses } from "../llm/record.ts";
import { forgetChunks } from "../robot/replay.ts";
import { compare, forgetUploads, sweep } from "../runs/sweep.ts";
import { unixSeconds } from "../std/clock.ts";
import { type ServiceClock, seenSeconds } from "../std/seen-clock.ts";
import type { BaseStore } from "../store/base.ts";
import { StoreDown } from "../store/store.ts";
import type { Service } from "./build.ts";
import type { Store } from "./domains.ts";

export class Upkeep {
  private readonly timers: readonly (() => void)[];

  constructor(
    private readonly service: Service,
    private readonly store: Pick<Store, "charges" | "people" | "robot" | "llm" | "base" | "exclusive">,
    private readonly days: { readonly usageDays: number; readonly responseDays: number },
  ) {
    const { core, robot, llm, runs } = service;
    const { clock, keys, log } = core;
    const { exclusive } = store;
    type Work = () => Promise<unknown>;
    const logged = (name: string, work: Work) => () =>
      work().catch((error: unknown) => log.error("upkeep fault", { work: name, stack: String(error) }));
    /** A turn that lasts longer than its period takes the time of the next ones. */
    const alone = (name: string, work: Work) => {
      const turn = logged(name, work);
      let isRunning = false;
      return async () => {
        if (isRunning) return;
        isRunning = true;
        await turn().finally(() => {
          isRunning = false;
        });
      };
    };
    const every = (ms: number, name: string, work: Work) => clock.every(ms, alone(name, work));
    /** A turn that does not wait for the last one, which may never end. */
    const always = (ms: number, name: string, work: Work) => clock.every(ms, logged(name, work));
    const comparison = alone("comparison of blobs", () => compare(runs));
    const seenMs = exclusive ? LIMITS.seenKeepOwnMs : LIMITS.seenKeepMs;
    this.timers = [
      clock.every(LIMITS.sweepMs, () => robot.sessions.sweep()),
      every(seenMs, "seen time", () => keepSeenTime(clock, store.base)),
      always(LIMITS.keysAskMs, "keys", () => keys.refresh()),
      every(LIMITS.keysFlushMs, "key uses", () => keys.flush()),
      every(LIMITS.holdsExpireMs, "holds", () => expireHolds(store.charges, clock, log)),
      // If no other process uses the store, none asks whether this one lives, and none queues jobs.
      ...(exclusive ? [] : [always(LIMITS.llmBeatMs, "owners", () => llm.owners.beat())]),
      clock.every(exclusive ? LIMITS.llmJobsLookOwnMs : LIMITS.llmJobsLookMs, () => llm.jobs.kick()),
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

/** Takes the later of the store's and the process's seen time for both. A store that is down gets it the next time. */
export async function keepSeenTime(clock: ServiceClock, store: Pick<BaseStore, "timeKeep">): Promise<void> {
  const seconds = await store.timeKeep({ seconds: seenSeconds(clock) });
  if (!(seconds instanceof StoreDown)) clock.reach(seconds);
}
