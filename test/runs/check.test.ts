import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rm, utimes, writeFile } from "node:fs/promises";
import { LIMITS } from "../../src/limits.ts";
import type { Backend } from "../../src/runs/blob/backend.ts";
import { blobPath, folderBackend } from "../../src/runs/blob/folder.ts";
import { s3Backend } from "../../src/runs/blob/s3.ts";
import { checkRuns } from "../../src/runs/check.ts";
import type { Store } from "../../src/service/domains.ts";
import { Problem } from "../../src/std/problem.ts";
import { StoreDown } from "../../src/store/store.ts";
import { ENGINES, type Place, place, startServer, stopServer } from "../store/engines.ts";
import { begun, blobId, nonce, random, sent, server, sha256, staged, stored, withBlobs } from "./blob/bytes.ts";
import { S3 } from "./blob/s3-server.ts";

const NOW = Math.floor(Date.now() / 1000);
const RUN = { accountId: "acct_1", robot: "lab-7", run: "fold-1" };
const BOUNDS = { runBytesMax: 1e9, runFilesMax: 100, runUploadsMax: 16, accountBytesMax: 1e9 };

withBlobs();
beforeAll(startServer, 60_000);
afterAll(stopServer);

/** A store and a folder of blobs, and files in them. */
class Kept implements AsyncDisposable {
  private constructor(
    readonly place: Place,
    readonly store: Store,
    readonly blobs: Backend,
  ) {}

  static async at(engine: (typeof ENGINES)[number]["name"], s3?: Backend): Promise<Kept> {
    const kept = await place(engine);
    const blobs = s3 ?? folderBackend(kept.dir, nonce);
    await blobs.check();
    return new Kept(kept, await kept.open(), blobs);
  }

  /** Its blob. */
  async file(path: string, bytes: Uint8Array): Promise<string> {
    const { runs } = this.store;
    const blob = blobId();
    const file = { ...RUN, ...BOUNDS, path, size: bytes.length, runId: "run_1", blobId: blob, owner: "o", at: NOW };
    expect(await runs.fileBegin(file)).toBe("begun");
    await this.blobs.put(await staged(bytes), blob);
    const commit = {
      accountId: RUN.accountId,
      blobId: blob,
      sha256: sha256(bytes),
      at: NOW,
      storedAt: NOW,
      month: 202611,
    };
    expect(await runs.fileCommit(commit)).toMatchObject({ replaced: expect.any(Boolean) });
    return blob;
  }

  path(blob: string): string {
    return blobPath(this.place.dir, blob);
  }

  async check(deep = false, blobs: Pick<Backend, "identity" | "list" | "read"> = this.blobs) {
    const checked = await checkRuns({ store: this.store.runs, blobs, now: NOW, deep });
    if (checked instanceof StoreDown) throw new Error(checked.reason);
    if (checked instanceof Problem) throw new Error(checked.message);
    return checked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.place[Symbol.asyncDispose]();
  }
}

/** Older than the grace span. */
const LONG_AGO = NOW - LIMITS.runLeftSeconds - 60;

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a record and bytes that agree are counted, and nothing is wrong", async () => {
      await using kept = await Kept.at(name);
      expect(await kept.check(true)).toMatchObject({ files: 0, bytes: 0, blobs: 0, read: 0 });
      await kept.file("episode.jsonl", random(300));
      await kept.file("frames/top/000000.jpg", random(0));
      await kept.file("episode.jsonl", random(500));
      const right = { files: 2, bytes: 500, blobs: 3, young: 0, totals: [], wrong: [], unnamed: [] };
      expect(await kept.check()).toEqual({ ...right, read: 0 });
      expect(await kept.check(true)).toEqual({ ...right, read: 2 });
    });

    test("a file whose bytes are gone, are of another size or have changed is named with its run", async () => {
      await using kept = await Kept.at(name);
      const [gone, short, changed] = [
        await kept.file("gone", random(10)),
        await kept.file("short", random(20)),
        await kept.file("changed", random(30)),
      ];
      await rm(kept.path(gone));
      await writeFile(kept.path(short), random(19));
      await writeFile(kept.path(changed), random(30));
      const { wrong } = await kept.check();
      const told = (found: typeof wrong) =>
        found.map(({ why, file: { path, robot, run } }) => `${why} ${robot}/${run}/${path}`);
      expect(told(wrong).sort()).toEqual(["missing lab-7/fold-1/gone", "size lab-7/fold-1/short"]);
      expect(told((await kept.check(true)).wrong).sort()).toEqual([
        "digest lab-7/fold-1/changed",
        "missing lab-7/fold-1/gone",
        "size lab-7/fold-1/short",
      ]);
    });

    test("parts that were begun do not stand for the file that they were to become", async () => {
      await using kept = await Kept.at(name);
      const blob = await kept.file("video.mp4", random(4096));
      await sent(kept.blobs, { id: blob, token: "" }, 1, random(10));
      expect((await kept.check()).wrong).toEqual([]);
      await rm(kept.path(blob));
      expect((await kept.check()).wrong).toMatchObject([{ why: "missing" }]);
    });

    test("blobs and parts without a record are wrong only when they are older than the grace span", async () => {
      await using kept = await Kept.at(name);
      const blob = await stored(kept.blobs, random(7));
      const assembly = await begun(kept.blobs);
      await sent(kept.blobs, assembly, 1, random(5));
      expect(await kept.check()).toMatchObject({ blobs: 1, young: 2, unnamed: [] });
      await utimes(kept.path(blob), LONG_AGO, LONG_AGO);
      expect(await kept.check()).toMatchObject({ young: 1, unnamed: [{ id: blob, size: 7, begun: false }] });
      await utimes(`${kept.place.dir}/parts/${assembly.id}`, LONG_AGO, LONG_AGO);
      const { unnamed } = await kept.check();
      expect(unnamed.map(({ id }) => id).sort()).toEqual([blob, assembly.id].sort());
    });

    test("totals that are not the sums of their files, and files without a run, are wrong", async () => {
      await using kept = await Kept.at(name);
      await kept.file("a", random(11));
      await kept.place.corrupt("UPDATE robot_runs SET stored = 12");
      const { totals } = await kept.check();
      expect(totals.map(({ of, total, sum }) => [of, Number(total), Number(sum)])).toEqual([
        ["run_bytes", 12, 11],
        ["account_stored", 11, 12],
      ]);
      await kept.place.corrupt("DELETE FROM robot_runs");
      expect((await kept.check()).wrong).toMatchObject([{ why: "record", file: { path: "a", robot: undefined } }]);
    });

    test("bytes of another database are told as such, and nothing is compared", async () => {
      await using kept = await Kept.at(name);
      await kept.file("a", random(11));
      expect((await kept.check()).wrong).toEqual([]);
      await kept.blobs.identity("store_other");
      await expect(kept.check()).rejects.toThrow("belong to the database store_other, and this one is none");
      await kept.store.runs.storeId({ id: "store_own" });
      await expect(kept.check()).rejects.toThrow("belong to the database store_other, and this one is store_own");
      await kept.place.corrupt("UPDATE run_store SET id = 'store_other'");
      expect((await kept.check()).wrong).toEqual([]);
    });

    test("what a service deletes while it is compared is not wrong", async () => {
      await using kept = await Kept.at(name);
      const blob = await kept.file("a", random(11));
      const orphan = await stored(kept.blobs, random(7));
      await utimes(kept.path(orphan), LONG_AGO, LONG_AGO);
      let lists = 0;
      const racing: Pick<Backend, "identity" | "list" | "read"> = {
        identity: kept.blobs.identity,
        read: kept.blobs.read,
        list: async (after) => {
          lists += 1;
          if (lists > 1) return await kept.blobs.list(after);
          const page = await kept.blobs.list(after);
          const found = { blobs: [{ id: orphan, size: 7, at: LONG_AGO, begun: false }], next: page.next };
          // A sweep that ends here: after the files were read, before the blobs are listed again.
          await kept.store.runs.runDelete({ ...RUN, cause: "gone_1", at: NOW });
          await kept.blobs.remove([blob, orphan]);
          return found;
        },
      };
      expect(await kept.check(false, racing)).toMatchObject({ files: 1, wrong: [], unnamed: [] });
    });
  });
}

describe.skipIf(S3.absent)(S3.title, () => {
  test("objects and begun uploads are compared alike, a page at a time", async () => {
    await using kept = await Kept.at("SQLite", s3Backend(server.options(), { pageKeys: 2 }));
    const blobs: string[] = [];
    for (let size = 0; size < 5; size += 1) blobs.push(await kept.file(`file-${size}`, random(size)));
    await sent(kept.blobs, await begun(kept.blobs), 1, random(5));
    await stored(kept.blobs, random(7));
    const right = { files: 5, bytes: 10, blobs: 6, young: 2, read: 5, totals: [], wrong: [], unnamed: [] };
    expect(await kept.check(true)).toEqual(right);
    await kept.blobs.remove(blobs.slice(3, 4));
    expect((await kept.check()).wrong).toMatchObject([{ why: "missing", file: { path: "file-3" } }]);
  }, 30_000);
});
