/** Turns of the recurring work that last longer than the time between two of them. */
import { expect, test } from "bun:test";
import { Drills } from "../../src/drill.ts";
import { LIMITS } from "../../src/limits.ts";
import { Blobs, BlobsDown } from "../../src/runs/blob/blobs.ts";
import { build } from "../../src/service/build.ts";
import { Upkeep } from "../../src/service/upkeep.ts";
import { fakeStore } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";

/** A service whose store answers these questions only when the test says so. */
function hanging() {
  const clock = new FakeClock();
  const store = fakeStore();
  const asked = { sweep: 0, keys: 0, owners: 0, compare: 0 };
  const answer = Promise.withResolvers<void>();
  const held = async <T>(what: keyof typeof asked, then: () => Promise<T>) => {
    asked[what] += 1;
    await answer.promise;
    return await then();
  };
  const { runs, accounts, llm } = store;
  const slow = {
    ...store,
    runs: {
      ...runs,
      blobsLeft: (of: Parameters<typeof runs.blobsLeft>[0]) => held("sweep", () => runs.blobsLeft(of)),
    },
    accounts: { ...accounts, keysRevision: () => held("keys", () => accounts.keysRevision()) },
    llm: { ...llm, ownerBeat: (of: Parameters<typeof llm.ownerBeat>[0]) => held("owners", () => llm.ownerBeat(of)) },
  };
  const log = { info: () => {}, error: () => {} };
  const blobs = new Blobs(undefined);
  const marker = () => held("compare", async () => new BlobsDown("none"));
  const ports = { clock, log, store: slow, blobs: Object.assign(blobs, { marker }) };
  const service = build({ chunkMs: 10_000, signUpOpen: false, drills: new Drills() }, ports);
  const upkeep = new Upkeep(service, { ...slow, exclusive: false }, { usageDays: 400, responseDays: 30 });
  return { clock, asked, upkeep, answer: answer.resolve };
}

test("a sweep that lasts takes the place of the next ones; keys are asked for and signs of life given all the same", async () => {
  const { clock, asked, upkeep, answer } = hanging();
  for (let turn = 0; turn < 4; turn += 1) {
    clock.advance(LIMITS.runSweepMs);
    await Bun.sleep(0);
  }
  expect(asked.sweep).toBe(1);
  expect(asked.keys).toBe((4 * LIMITS.runSweepMs) / LIMITS.keysAskMs);
  expect(asked.owners).toBe((4 * LIMITS.runSweepMs) / LIMITS.llmBeatMs);
  answer();
  await Bun.sleep(5);
  clock.advance(LIMITS.runSweepMs);
  await Bun.sleep(0);
  expect(asked.sweep).toBe(2);
  upkeep.stop();
});

test("blobs are compared soon after the start, and not beside a comparison that still runs", async () => {
  const { clock, asked, upkeep } = hanging();
  clock.advance(LIMITS.runCompareFirstMs - 1);
  await Bun.sleep(0);
  expect(asked.compare).toBe(0);
  clock.advance(1);
  await Bun.sleep(0);
  expect(asked.compare).toBe(1);
  clock.advance(2 * LIMITS.runCompareMs);
  await Bun.sleep(0);
  expect(asked.compare).toBe(1);
  upkeep.stop();
});
