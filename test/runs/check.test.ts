/** `checkRuns` compares the records of runs with their bytes, beside a service that runs. */
import { expect } from "bun:test";
import { rm, utimes, writeFile } from "node:fs/promises";
import { LIMITS } from "../../src/limits.ts";
import type { Backend } from "../../src/runs/blob/backend.ts";
import { blobPath, folderBackend } from "../../src/runs/blob/folder.ts";
import { s3Backend } from "../../src/runs/blob/s3.ts";
import { type Checked, checkRuns } from "../../src/runs/check.ts";
import { Problem } from "../../src/std/problem.ts";
import { StoreDown } from "../../src/store/store.ts";
import { begun, nonce, random, sent, stored, withBlobs } from "./blob/bytes.ts";
import type { Person } from "./person.ts";
import { MATRIX, onStores, RECORDS, type RunsStage } from "./stage.ts";

withBlobs();

const NOW = Math.floor(Date.now() / 1000);
/** A time before the grace span. */
const LONG_AGO = NOW - LIMITS.runLeftSeconds - 60;

const backendOf = ({ s3, dataDir }: RunsStage) => (s3 ? s3Backend(s3, { pageKeys: 2 }) : folderBackend(dataDir, nonce));

async function check(at: RunsStage, deep = false, blobs: Pick<Backend, "marker" | "list" | "read"> = backendOf(at)) {
  const checked = await checkRuns({ store: at.store.runs, blobs, now: NOW, deep });
  if (checked instanceof StoreDown) throw new Error(checked.reason);
  if (checked instanceof Problem) throw new Error(checked.message);
  return checked;
}

/** Stores a file; the result is the id and the path of its blob. */
async function file(at: RunsStage, ann: Person, path: string, bytes: Uint8Array<ArrayBuffer>) {
  expect((await ann.put("fold-1", path, bytes)).status).toBeWithin(200, 202);
  const [row] = await at.rows(`SELECT blob_id AS id FROM run_files WHERE path = '${path}'`);
  const id = String(row?.id);
  return { id, path: blobPath(at.dataDir, id) };
}

onStores(RECORDS, { fresh: true }, (test) => {
  test("a record and bytes that agree are counted, and nothing is wrong", async ({ at, ann }) => {
    expect(await check(at, true)).toMatchObject({ files: 0, bytes: 0, blobs: 0, read: 0 });
    await file(at, ann, "episode.jsonl", random(300));
    await file(at, ann, "frames/top/000000.jpg", random(0));
    await file(at, ann, "episode.jsonl", random(500));
    const right = { files: 2, bytes: 500, blobs: 3, young: 0, totals: [], wrong: [], unnamed: [] };
    expect(await check(at)).toEqual({ ...right, read: 0 });
    expect(await check(at, true)).toEqual({ ...right, read: 2 });
  });

  test("a file whose bytes are gone, are of another size or have changed is named", async ({ at, ann }) => {
    await rm((await file(at, ann, "gone", random(10))).path);
    await writeFile((await file(at, ann, "short", random(20))).path, random(19));
    await writeFile((await file(at, ann, "changed", random(30))).path, random(30));
    const told = ({ wrong }: Checked) =>
      wrong.map(({ why, file: { path, robot, run } }) => `${why} ${robot}/${run}/${path}`).sort();
    const found = ["missing arm/fold-1/gone", "size arm/fold-1/short"];
    expect(told(await check(at))).toEqual(found);
    expect(told(await check(at, true))).toEqual(["digest arm/fold-1/changed", ...found]);
  });

  test("parts that were begun are not the file that they were to become", async ({ at, ann }) => {
    const { id, path } = await file(at, ann, "video.mp4", random(4096));
    await sent(backendOf(at), { id, token: "" }, 1, random(10));
    expect((await check(at)).wrong).toEqual([]);
    await rm(path);
    expect((await check(at)).wrong).toMatchObject([{ why: "missing" }]);
  });

  test("blobs and parts without a record are wrong only after the grace span", async ({ at }) => {
    const blobs = backendOf(at);
    const blob = await stored(blobs, random(7));
    const assembly = await begun(blobs);
    await sent(blobs, assembly, 1, random(5));
    expect(await check(at)).toMatchObject({ blobs: 1, young: 2, unnamed: [] });
    await utimes(blobPath(at.dataDir, blob), LONG_AGO, LONG_AGO);
    expect(await check(at)).toMatchObject({ young: 1, unnamed: [{ id: blob, size: 7, begun: false }] });
    await utimes(`${at.dataDir}/parts/${assembly.id}`, LONG_AGO, LONG_AGO);
    const { unnamed } = await check(at);
    expect(unnamed.map(({ id }) => id).sort()).toEqual([blob, assembly.id].sort());
  });

  test("totals that are not the sums of their files, and files without a run, are wrong", async ({ at, ann }) => {
    await file(at, ann, "a", random(11));
    await at.place.corrupt("UPDATE robot_runs SET stored = 12");
    const { totals } = await check(at);
    expect(totals.map(({ of, total, sum }) => [of, Number(total), Number(sum)])).toEqual([
      ["run_bytes", 12, 11],
      ["account_stored", 11 + 2048, 12 + 2048],
    ]);
    await at.place.corrupt("DELETE FROM robot_runs");
    expect((await check(at)).wrong).toMatchObject([{ why: "record", file: { path: "a", robot: undefined } }]);
    await at.place.corrupt("DELETE FROM run_accounts");
  });

  test("bytes of another database are reported as such, and nothing is compared", async ({ at, ann }) => {
    await file(at, ann, "a", random(11));
    expect((await check(at)).wrong).toEqual([]);
    const blobs = backendOf(at);
    expect(await blobs.mark(await blobs.marker(), "store_other gen_1")).toBe(true);
    await expect(check(at)).rejects.toThrow(/belong to the database store_other, and this one is store_\w{16}:/);
    await at.place.corrupt("UPDATE run_store SET id = 'store_other'");
    expect((await check(at)).wrong).toEqual([]);
  });

  test("what a service deletes while it is compared is not wrong", async ({ at, ann }) => {
    const { id } = await file(at, ann, "a", random(11));
    const blobs = backendOf(at);
    const orphan = await stored(blobs, random(7));
    await utimes(blobPath(at.dataDir, orphan), LONG_AGO, LONG_AGO);
    let lists = 0;
    const racing: Pick<Backend, "marker" | "list" | "read"> = {
      marker: blobs.marker,
      read: blobs.read,
      list: async (after) => {
        lists += 1;
        const { next, ...page } = await blobs.list(after);
        if (lists > 1) return { ...page, next };
        // A sweep ends here: after the files were read, before the blobs are listed again.
        await ann.erase("fold-1");
        await blobs.remove([id, orphan]);
        return { blobs: [{ id: orphan, size: 7, at: LONG_AGO, begun: false }], next };
      },
    };
    expect(await check(at, false, racing)).toMatchObject({ files: 1, wrong: [], unnamed: [] });
  });
});

const S3_ALONE = MATRIX.filter(({ engine, blobs }) => engine === "SQLite" && blobs === "S3");

onStores(S3_ALONE, { fresh: true }, (test) => {
  test("objects and begun uploads are compared alike, a page at a time", async ({ at, ann }) => {
    const blobs: string[] = [];
    for (let size = 0; size < 5; size += 1) blobs.push((await file(at, ann, `file-${size}`, random(size))).id);
    const backend = backendOf(at);
    await sent(backend, await begun(backend), 1, random(5));
    await stored(backend, random(7));
    const right = { files: 5, bytes: 10, blobs: 6, young: 2, read: 5, totals: [], wrong: [], unnamed: [] };
    expect(await check(at, true)).toEqual(right);
    await backend.remove(blobs.slice(3, 4));
    expect((await check(at)).wrong).toMatchObject([{ why: "missing", file: { path: "file-3" } }]);
  });
});
