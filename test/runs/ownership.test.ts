/** Which database may remove bytes: the marker beside them names it and its generation. */
import { expect } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../src/limits.ts";
import { BlobsDown } from "../../src/runs/blob/blobs.ts";
import { folderBackend } from "../../src/runs/blob/folder.ts";
import { s3Backend } from "../../src/runs/blob/s3.ts";
import { nextGeneration } from "../../src/runs/ownership.ts";
import { compare } from "../../src/runs/sweep.ts";
import { openBlobs } from "../../src/service/blobs.ts";
import { nonce } from "./blob/bytes.ts";
import { MATRIX, onStores, RECORDS, type RunsStage } from "./stage.ts";

const DAY = 86_400;

/** The row of the store by which the bytes know it. */
async function copied(at: RunsStage): Promise<() => Promise<void>> {
  const [row] = await at.rows("SELECT generation, marked FROM run_store");
  return () => at.place.corrupt(`UPDATE run_store SET generation = '${row?.generation}', marked = '${row?.marked}'`);
}

const errors = (at: RunsStage) => at.logged.filter((line) => line.startsWith("no bytes of runs removed"));

async function removeMarker({ s3, dataDir }: RunsStage): Promise<void> {
  if (s3) await s3Backend(s3).remove([".tendon-store"]);
  else await rm(join(dataDir, "blobs/store-id"));
}

onStores(MATRIX, { fresh: true }, (test) => {
  test("a restored database removes nothing of the newer one until it adopts the bytes", async ({ at, ann }) => {
    const { runs } = at.service;
    await ann.completed("one", { a: "12345" });
    const id = await ann.sent("open", "a", "12345");
    const putBack = await copied(at);
    await ann.completed("two", { a: "newer" });
    await at.sweep(LIMITS.runGenerationSeconds);
    const newer = await copied(at);
    // The copy knows the first run alone, which then is deleted.
    const [two] = await at.rows("SELECT id FROM robot_runs WHERE run = 'two'");
    await ann.erase("two");
    await at.place.corrupt(`DELETE FROM run_blobs WHERE run_id = '${two?.id}' OR id LIKE 'del_%'`);
    await putBack();
    await ann.erase("one");
    // What the newer database may name stays, also where the part comes again.
    await ann.part("open", "a", id, 1, "67890");
    const parts = async () =>
      (await readdir(join(at.dataDir, "parts"), { recursive: true })).filter((name) => name.includes("/1-"));
    if (!at.s3) expect((await parts()).length).toBe(2);
    for (let turn = 0; turn < 3; turn += 1) {
      await at.sweep(10 * DAY);
      await compare(runs);
    }
    expect((await at.blobIds()).length).toBe(3);
    expect(errors(at)).toEqual([expect.stringContaining("tendon admin runs adopt")]);
    expect((await ann.put("three", "a", "1")).said).toBe("201");

    expect(await nextGeneration(runs, true)).toHaveProperty("marker");
    await at.sweep();
    await compare(runs);
    expect((await at.blobIds()).length).toBe(2);
    await at.sweep(3 * DAY + 120);
    expect((await at.blobIds()).length).toBe(1);
    await newer();
    await ann.erase("three");
    await at.sweep(120);
    expect((await at.blobIds()).length).toBe(1);
  });

  test("of two copies that both are up to date one may remove bytes, and no end of a process locks one out", async ({
    at,
  }) => {
    const { ownership, blobs } = at.service.runs;
    const other = await copied(at);
    const { mark } = blobs;
    // It ends between the database and the marker.
    blobs.mark = async () => new BlobsDown("ended");
    expect(await ownership.raise()).toBe(false);
    const between = await copied(at);
    blobs.mark = mark;
    expect([await ownership.raise(), await ownership.raise()]).toEqual([true, true]);
    for (const copy of [other, between]) {
      const mine = await copied(at);
      await copy();
      expect(await ownership.raise()).toBe(false);
      await mine();
      expect(await ownership.raise()).toBe(true);
    }
  });

  test("nodes of one database raise its generation side by side", async ({ at }) => {
    const { runs } = at.service;
    const three = <T>(work: () => Promise<T>) => Promise.all([work(), work(), work()]);
    expect(await three(() => runs.ownership.raise())).toEqual([true, true, true]);
    // A folder has one node, whose lock keeps others away.
    if (!at.s3) return;
    const raised = await three(() => nextGeneration(runs));
    expect(raised.map((one) => "marker" in one)).toEqual([true, true, true]);
    expect(await runs.ownership.raise()).toBe(true);
  });

  test("bytes without their marker are not taken for new ones: nothing is served until it is back", async ({
    at,
    ann,
  }) => {
    const { runs } = at.service;
    await removeMarker(at);
    // Without files nothing is missing.
    expect(await runs.ownership.raise()).toBe(true);
    await ann.completed("one", { a: "12345" });
    await removeMarker(at);
    await at.sweep(LIMITS.runGenerationSeconds);
    const refused = [
      await ann.put("two", "a", "1"),
      await ann.get("one", "a"),
      await ann.list(),
      await ann.erase("one"),
    ];
    expect(refused.map(({ said }) => said)).toEqual(refused.map(() => "503 storage_unavailable"));
    const ready = await at.send("/readyz");
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining("is a volume not mounted")]);
    expect(await runs.blobs.marker()).toBe("");
    expect(await nextGeneration(runs, true)).toHaveProperty("marker");
    await at.sweep(LIMITS.runGenerationSeconds);
    expect((await ann.get("one", "a")).said).toBe("200");
    expect((await at.send("/readyz")).status).toBe(200);
  });
});

onStores(RECORDS, { fresh: true }, (test) => {
  test("a folder without its marker ends the start, if the database has files", async ({ at, ann }) => {
    const { runs } = at.service;
    const where = { dataDir: at.dataDir, blobs: undefined };
    await rm(join(at.dataDir, "blobs"), { recursive: true });
    expect(await openBlobs(runs, where)).toBeUndefined();
    await ann.completed("one", { a: "12345" });
    expect(await openBlobs(runs, where)).toBeUndefined();
    await rm(join(at.dataDir, "blobs"), { recursive: true });
    expect(await openBlobs(runs, where)).toMatchObject({
      exit: 2,
      message: expect.stringMatching(new RegExp(`${at.dataDir}/blobs: .*volume.*tendon admin runs adopt`)),
    });
    expect(await folderBackend(at.dataDir, nonce).marker()).toBe("");
  });
});
