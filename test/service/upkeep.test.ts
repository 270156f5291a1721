/** What a service does when nobody asks it for anything. */
import { expect, test } from "bun:test";
import { Drills } from "../../src/drill.ts";
import { build } from "../../src/service/build.ts";
import { beginSeenTime, Upkeep } from "../../src/service/upkeep.ts";
import { fakeStore } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";

test("on a private store it writes no signs of life and looks for no jobs of others; on a shared one it does", async () => {
  for (const exclusive of [true, false]) {
    const clock = new FakeClock();
    const store = fakeStore();
    const written: string[] = [];
    const llm = {
      ...store.llm,
      ownerBeat: (of: { owner: string }) => {
        written.push("beat");
        return store.llm.ownerBeat(of);
      },
      jobsTake: (of: Parameters<typeof store.llm.jobsTake>[0]) => {
        written.push("take");
        return store.llm.jobsTake(of);
      },
    };
    const log = { info: () => {}, error: () => {} };
    const settings = { chunkMs: 10_000, signUpOpen: false, drills: new Drills() };
    const service = build(settings, { clock, log, store: { ...store, llm } });
    service.llm.jobs.start();
    const upkeep = new Upkeep(service, { ...store, exclusive }, { usageDays: 400, responseDays: 30 });
    await Bun.sleep(0);
    written.length = 0;
    for (let second = 0; second < 10; second += 1) {
      clock.advance(1_000);
      await Bun.sleep(0);
    }
    expect([exclusive, new Set(written)]).toEqual([exclusive, new Set(exclusive ? [] : ["beat", "take"])]);
    upkeep.stop();
  }
});

test("the time that the service sees pass is kept while it runs: what a kill loses of it is seconds", async () => {
  for (const exclusive of [true, false]) {
    const clock = new FakeClock();
    const store = fakeStore();
    const log = { info: () => {}, error: () => {} };
    const service = build({ chunkMs: 10_000, signUpOpen: false, drills: new Drills() }, { clock, log, store });
    await beginSeenTime(service.core.clock, store.base);
    const upkeep = new Upkeep(service, { ...store, exclusive }, { usageDays: 400, responseDays: 30 });
    const kept = () => Number(store.rows<{ seconds: bigint }>("SELECT seconds FROM seen_time")[0]?.seconds) * 1_000;
    const from = kept();
    clock.jump(-3 * 86_400_000);
    for (let second = 1; second <= 60; second += 1) {
      clock.advance(1_000);
      await Bun.sleep(0);
      const lostMs = from + second * 1_000 - kept();
      expect([exclusive, second, lostMs]).toEqual([exclusive, second, exclusive ? (second % 5) * 1_000 : 0]);
    }
    // Another process has seen more.
    await store.base.timeKeep({ seconds: from / 1_000 + 100 });
    clock.advance(5_000);
    await Bun.sleep(0);
    expect(service.core.clock.seenMs()).toBe(from + 100_000);
    upkeep.stop();
  }
});
