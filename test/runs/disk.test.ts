/** A disk without room: what it answers, what stays, and that it recovers by itself. */
import { expect, test } from "bun:test";
import { mkdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../src/limits.ts";
import { runDiskFloorBytes } from "../../src/runs/blob/staging.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { fileOf } from "./person.ts";
import { RunsStage } from "./stage.ts";

const MiB = 2 ** 20;

/** A service on a small disk: with its database, as on most machines, or with its bytes alone. */
async function onSmallDisk(
  sizeMiB: number,
  what: "all" | "bytes",
  work: (at: RunsStage, folder: string) => Promise<void>,
): Promise<void> {
  await using dir = await temporaryFolder();
  const folder = join(dir.path, "small");
  await mkdir(folder);
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${sizeMiB}m`, "none", folder]);
  expect(mounted.exitCode).toBe(0);
  const { TMPDIR } = process.env;
  // The folders of a stage are made there.
  if (what === "all") process.env.TMPDIR = folder;
  try {
    await using at = await RunsStage.start(what === "bytes" ? { dataDir: folder } : {});
    await work(at, folder);
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    Bun.spawnSync(["umount", "-l", folder]);
  }
}

const privileged = process.getuid?.() === 0;

test.skipIf(!privileged)(
  "a full disk is storage_unavailable; what was complete stays, and with room again all goes on",
  () =>
    onSmallDisk(8, "bytes", async (at, folder) => {
      const ann = await at.person();
      const bytes = new Uint8Array(2 * MiB).map((_, index) => (index * 2_654_435_761) >>> 11);
      await ann.completed("before", { a: bytes });
      const id = await ann.begun("parts", "a", { size: bytes.length, sha256: fileOf("", bytes).sha256 });
      expect((await ann.part("parts", "a", id, 1, bytes)).said).toBe("200");
      const filler = join(folder, "filler");
      await Bun.write(filler, new Uint8Array(3 * MiB));
      const room = await ann.room();
      const refused = [
        await ann.put("during", "a", bytes),
        await ann.part("parts", "a", id, 1, bytes),
        await ann.finish("parts", "a", id),
      ];
      expect(refused.map(({ said }) => said)).toEqual(refused.map(() => "503 storage_unavailable"));
      for (const { headers, json } of refused) {
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
        expect(json.error.message).toContain("no room");
        expect(json.error.message).not.toContain(folder);
      }
      expect(await ann.room()).toEqual(room);
      expect(await at.staged()).toEqual([]);
      expect(Buffer.compare((await ann.get("before", "a")).bytes, bytes)).toBe(0);
      expect((await ann.uploads("parts", "a", id)).json).toMatchObject({ received: [{ part: 1 }] });
      await rm(filler);
      expect((await ann.put("during", "a", bytes)).said).toBe("201");
      await ann.erase("during");
      await rm(join(folder, "blobs"), { recursive: true });
      // Bytes that are lost are told as such, not as an empty file.
      expect((await ann.get("before", "a")).said).toBe("503 storage_unavailable");
      expect((await ann.finish("parts", "a", id)).said).toBe("200");
      await ann.complete("parts", [fileOf("a", bytes)]);
      expect(Buffer.compare((await ann.get("parts", "a")).bytes, bytes)).toBe(0);
    }),
);

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

test.skipIf(!privileged)(
  "clients that upload until they are refused leave room: records are written, runs deleted, and then they go on",
  () =>
    onSmallDisk(48, "all", async (at, folder) => {
      const bytes = new Uint8Array(2 * MiB).fill(7);
      const people = [await at.person(), await at.person()];
      const upload = async (one: (typeof people)[number], lane: number) => {
        for (let count = 0; ; count += 1) {
          const answer = await one.put(`run-${lane}`, `${count}`, bytes);
          if (answer.said !== "201") return answer;
        }
      };
      const refused = await Promise.all([0, 1, 2, 3].flatMap((lane) => people.map((one) => upload(one, lane))));
      expect(refused.map(({ said, headers }) => [said, headers.get("retry-after")])).toEqual(
        refused.map(() => ["503 storage_unavailable", "60"]),
      );
      // The database has taken some of the 4.8 MiB.
      expect(await freeBytes(folder)).toBeGreaterThan(4 * MiB);
      expect(await at.staged()).toEqual([]);
      const [ann] = people;
      // Writes of every kind: an account with its key, and the deletion of a run.
      const ben = await at.person();
      expect(await ben.room()).toEqual([0, 0]);
      for (const lane of [0, 1, 2, 3]) expect((await ann?.erase(`run-${lane}`))?.said).toBe("204");
      expect((await ben.put("one", "a", bytes)).said).toBe("503 storage_unavailable");
      await at.sweep(LIMITS.runGoneSeconds + 1);
      expect((await ben.put("one", "a", bytes)).said).toBe("201");
    }),
  60_000,
);

test.skipIf(!privileged)(
  "records take no room that the database must keep: a run is not completed, an upload not begun",
  () =>
    onSmallDisk(16, "all", async (at, folder) => {
      const ann = await at.person();
      await ann.put("one", "a", "");
      await ann.completed("before", { a: "" });
      const filler = join(folder, "filler");
      await Bun.write(filler, new Uint8Array((await freeBytes(folder)) - MiB));
      const asked = [await ann.complete("one", [fileOf("a", "")]), await ann.begin("two", "a", { size: 1 })];
      expect(asked.map(({ said }) => said)).toEqual(["503 storage_unavailable", "503 storage_unavailable"]);
      expect(asked[0]?.message).toContain("no room");
      expect((await ann.complete("before", [fileOf("a", "")])).said).toBe("200");
      await rm(filler);
      expect((await ann.complete("one", [fileOf("a", "")])).said).toBe("200");
    }),
);

test.skipIf(!privileged)("what was announced and has not come yet takes its room, and no longer than it comes", () =>
  onSmallDisk(60, "all", async (at) => {
    const ann = await at.person();
    const half = ann.halfPut("one", "a", 40 * MiB, new Uint8Array(MiB));
    while ((await at.staged()).length === 0) await Bun.sleep(5);
    const bytes = new Uint8Array(23 * MiB);
    expect((await ann.put("one", "b", bytes)).said).toBe("503 storage_unavailable");
    const upload = await ann.begun("one", "d", { size: 16 * MiB });
    expect((await ann.part("one", "d", upload, 1, bytes.subarray(0, 16 * MiB))).said).toBe("503 storage_unavailable");
    half.cut();
    while ((await ann.room())[1] !== 16 * MiB) await Bun.sleep(5);
    expect((await ann.part("one", "d", upload, 1, bytes.subarray(0, 16 * MiB))).said).toBe("200");
    expect((await ann.put("one", "b", bytes)).said).toBe("201");
    // Its parts are there, and it would stand there once more.
    expect((await ann.finish("one", "d", upload)).said).toBe("503 storage_unavailable");
    await ann.remove("one", "b");
    await at.sweep(LIMITS.runGoneSeconds + 1);
    expect((await ann.finish("one", "d", upload)).said).toBe("200");
  }),
);

test.skipIf(!privileged)("files without bytes do not take the last files that the disk can have", () =>
  onSmallDisk(16, "all", async (at, folder) => {
    const ann = await at.person();
    Bun.spawnSync(["mount", "-o", "remount,nr_inodes=400", folder]);
    let said = "201";
    for (let count = 0; said === "201" && count < 500; count += 1) said = (await ann.put("one", `${count}`, "")).said;
    expect(said).toBe("503 storage_unavailable");
    expect((await statfs(folder)).ffree).toBeWithin(5, 40);
    expect((await ann.erase("one")).said).toBe("204");
  }),
);

test("uploads leave a twentieth of the disk and at least 1 GiB, of a small one a tenth", () => {
  const GiB = 2 ** 30;
  const floors = [
    [1, 0.1],
    [3, 0.3],
    [4, 1],
    [20, 1],
    [100, 5],
  ] as const;
  for (const [disk, floor] of floors) expect(runDiskFloorBytes(disk * GiB) / GiB).toBeCloseTo(floor);
});

test("once the thread of the bytes has ended, senders and readers get an error at once", async () => {
  await using at = await RunsStage.start();
  const ann = await at.person();
  const half = ann.halfPut("one", "a", 64 * MiB, new Uint8Array(MiB));
  while ((await at.staged()).length === 0) await Bun.sleep(5);
  at.service.runs.blobs.close();
  half.write(new Uint8Array(4 * MiB));
  expect(await half.said).toBe("503 storage_unavailable");
  half.cut();
  expect((await ann.put("one", "b", "1")).said).toBe("503 storage_unavailable");
  expect(await ann.room()).toEqual([0, 0]);
  // Emptied at the next start.
  await rm(join(at.dataDir, "staging/1"), { force: true });
});
