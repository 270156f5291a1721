/** The thread of the blobs ends by a fault: the operator hears of it at once, and load balancers too. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Drills } from "../../src/drill.ts";
import { appOf } from "../../src/http/app.ts";
import { Blobs, BlobsDown } from "../../src/runs/blob/blobs.ts";
import { Ownership } from "../../src/runs/ownership.ts";
import { openBlobs } from "../../src/service/blobs.ts";
import { build } from "../../src/service/build.ts";
import { health } from "../../src/service/ops/health.ts";
import { systemClock } from "../../src/std/clock.ts";
import { ServiceClock } from "../../src/std/seen-clock.ts";
import { fakeStore } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { temporaryFolder } from "../store/temporary.ts";

const ENTRY = join(import.meta.dir, "../../src/service/blob-thread.ts");

/** What `/readyz` says. */
async function ready(blobs: Blobs): Promise<[status: number, text: string]> {
  const ports = { clock: new FakeClock(), log: { info: () => {}, error: () => {} }, store: fakeStore() };
  const { http, core } = build({ chunkMs: 10_000, signUpOpen: false, drills: new Drills() }, ports);
  const catalog = { ids: [], known: true, loading: [], models: new Map(), out: () => [] };
  const app = appOf(http, [health({ ...ports, lifecycle: core.lifecycle, catalog, blobs })]);
  const response = await app.handle(new Request("http://service/readyz"));
  return [response.status, await response.text()];
}

async function opened(dataDir: string) {
  const thread = new Worker(ENTRY);
  const blobs = new Blobs(thread, { kind: "folder", path: dataDir });
  const logged: string[] = [];
  const told = Promise.withResolvers<void>();
  const error = (event: string, facts: object = {}) => {
    logged.push(`${event} ${JSON.stringify(facts)}`);
    told.resolve();
  };
  const log = { info: () => {}, error };
  const runsMark = async () => ({ marker: "store_1 gen_1" });
  const ownership = new Ownership({ store: { runsMark }, blobs, clock: new ServiceClock(systemClock) }, log);
  expect(await openBlobs({ blobs, ownership, log }, { dataDir, blobs: undefined })).toBeUndefined();
  return { thread, blobs, logged, told: told.promise };
}

test("a thread that a fault ends is logged at once, and the service is not ready any more", async () => {
  await using dir = await temporaryFolder();
  const { thread, blobs, logged, told } = await opened(dir.path);
  expect((await ready(blobs))[0]).toBe(200);
  // The thread cannot read this message.
  thread.postMessage(null);
  await told;
  expect(logged).toEqual([expect.stringMatching(/^run storage is down until the next start .*has ended.*restart/)]);
  expect(await blobs.receive(1)).toBeInstanceOf(BlobsDown);
  expect(await ready(blobs)).toEqual([503, expect.stringContaining("the storage of runs has ended")]);
  blobs.close();
});

test("the end of the service is no fault of the thread", async () => {
  await using dir = await temporaryFolder();
  const { thread, blobs, logged } = await opened(dir.path);
  const closed = Promise.withResolvers<unknown>();
  thread.addEventListener("close", closed.resolve);
  blobs.close();
  await closed.promise;
  expect([logged, blobs.endedReason]).toEqual([[], undefined]);
});
