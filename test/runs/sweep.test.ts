/** The sweep ends and removes what processes leave that end in the middle, on both stores of records. */
import { expect } from "bun:test";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { LIMITS } from "../../src/limits.ts";
import { BlobsDown } from "../../src/runs/blob/blobs.ts";
import { blobPath } from "../../src/runs/blob/folder.ts";
import { compare, forgetUploads, sweep, takeOver } from "../../src/runs/sweep.ts";
import { fileOf } from "./person.ts";
import { type Given, onStores, RECORDS, RunsStage } from "./stage.ts";

const HOUR = 3_600;

const now = ({ at }: Pick<Given, "at">) => Math.floor(at.clock.unixMs() / 1000);

/** Leaves the work of a process that ended: a file that came, one that was stored without its record, an upload that was joined. */
async function leave(given: Given, owner: string): Promise<string> {
  const { at, ann } = given;
  const { store, blobs, bounds } = at.service.runs;
  const file = { accountId: ann.accountId, robot: "arm", run: "left", ...bounds, owner, at: now(given) };
  for (const name of ["coming", "stored"]) {
    const blobId = `blob_${owner}${name}`;
    expect(await store.fileBegin({ ...file, runId: `run_${owner}`, blobId, path: name, size: 5 })).toBe("begun");
    const receiving = await blobs.receive(5);
    if (!("write" in receiving)) throw new Error(receiving.reason);
    await receiving.write(Buffer.from("12345"));
    const staged = await receiving.end();
    if (!("sha256" in staged)) throw new Error(staged.reason);
    if (name === "stored") await blobs.put(staged, blobId);
    else await blobs.discard(staged);
  }
  const uploadId = await ann.sent("left", `joining-${owner}`, "12345");
  const { accountId, accountBytesMax } = { ...ann, ...bounds };
  const join = { accountId, uploadId, owner, attempt: `join_${owner}`, accountBytesMax, at: now(given) };
  expect(await store.joinBegin(join)).toHaveProperty("upload");
  return uploadId;
}

/** Makes old blobs without a record. */
async function orphans(at: RunsStage, count: number): Promise<void> {
  const long = now({ at }) - LIMITS.runLeftSeconds - 60;
  for (let one = 0; one < count; one += 1) {
    const path = blobPath(at.dataDir, `blob_orphan${one}xx`);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, "1");
    await utimes(path, long, long);
  }
}

const errors = (at: RunsStage, event: string) => at.logged.filter((line) => line.startsWith(event));

onStores(RECORDS, { fresh: true }, (test, combination) => {
  test("a start ends the work of the process before it and gives its room back; uploads go on", async ({ at, ann }) => {
    const id = await leave({ at, ann }, "node_before");
    expect(await ann.room()).toEqual([0, 20]);
    await takeOver(at.service.runs, undefined);
    await takeOver(at.service.runs, "node_other");
    expect(await ann.room()).toEqual([0, 20]);
    await takeOver(at.service.runs, "node_before");
    expect(await ann.room()).toEqual([0, 5]);
    expect((await ann.finish("left", "joining-node_before", id)).said).toBe("200");
    await at.sweep(61);
    expect(await at.blobIds()).toEqual([expect.stringMatching(/^blob_/)]);
    expect((await ann.complete("left", [fileOf("joining-node_before", "12345")])).said).toBe("200");
  });

  test("a process that has the store alone ends the work of all others", async ({ at, ann }) => {
    await leave({ at, ann }, "node_a");
    await leave({ at, ann }, "node_b");
    await takeOver(at.service.runs, "all");
    expect(await ann.room()).toEqual([0, 10]);
  });

  test("the work of another node stays for three hours, that of this process while it lasts", async ({ at, ann }) => {
    await leave({ at, ann }, "node_beside");
    const half = ann.halfPut("live", "a", 10, "12345");
    while ((await ann.room())[1] !== 30) await Bun.sleep(5);
    await at.sweep(3 * HOUR - 60);
    expect(await ann.room()).toEqual([0, 30]);
    await at.sweep(120);
    expect(await ann.room()).toEqual([0, 15]);
    half.write("67890");
    expect(await half.said).toBe("201");
  });

  test("a second node takes nothing of what the first does", async ({ at, ann }) => {
    await using second = await RunsStage.start({ beside: at });
    const half = ann.halfPut("live", "a", 10, "12345");
    while ((await ann.room())[1] !== 10) await Bun.sleep(5);
    const id = await ann.sent("live", "b", "12345");
    await sweep(second.service.runs);
    await compare(second.service.runs);
    half.write("67890");
    expect(await half.said).toBe("201");
    // Every node answers every request.
    expect((await ann.at(second.url).finish("live", "b", id)).said).toBe("200");
    const list = [fileOf("a", "1234567890"), fileOf("b", "12345")];
    expect((await ann.at(second.url).complete("live", list)).said).toBe("200");
    expect((await ann.get("live", "b")).bytes.length).toBe(5);
  });

  test("what a request of this process could not end is ended by the sweep", async ({ at, ann }) => {
    const id = await leave({ at, ann }, at.service.runs.owner);
    await at.sweep();
    expect(await ann.room()).toEqual([0, 5]);
    expect((await ann.uploads("left", `joining-${at.service.runs.owner}`, id)).json).toMatchObject({
      received: [{ part: 1 }],
    });
  });

  test("bytes without a record go three days after they are found; parts of uploads and files stay", async ({
    at,
    ann,
  }) => {
    await ann.put("kept", "file", "1");
    await ann.sent("kept", "upload", "12345");
    const before = await at.blobIds();
    expect(before.length).toBe(2);
    await leave({ at, ann }, "node_lost");
    await at.place.corrupt("DELETE FROM run_blobs");
    await at.place.corrupt("UPDATE robot_runs SET reserved = 5, coming = 1 WHERE run = 'left'");
    await at.place.corrupt("UPDATE run_accounts SET reserved = reserved - 10 - 2048");
    await compare(at.service.runs);
    expect((await at.blobIds()).length).toBe(4);
    const left = await at.rows("SELECT blob_id AS id FROM run_uploads WHERE state = 'joining'");
    at.clock.aheadSeconds += 3 * HOUR + 60;
    await compare(at.service.runs);
    await at.sweep(72 * HOUR - 60);
    await compare(at.service.runs);
    expect((await at.blobIds()).length).toBe(4);
    await at.sweep(180);
    expect(await at.blobIds()).toEqual([...before, ...left.map(({ id: blob }) => String(blob))].sort());
  });

  test("no bytes are removed that belong to another database, or whose database is unknown", async ({ at, ann }) => {
    await at.sweep();
    await ann.completed("one", { a: "12345" });
    await ann.erase("one");
    await orphans(at, 1);
    at.clock.aheadSeconds += 61;
    const [own] = await at.rows("SELECT id FROM run_store");
    await at.place.corrupt("UPDATE run_store SET id = 'store_other'");
    await at.sweep();
    await compare(at.service.runs);
    expect((await at.blobIds()).length).toBe(2);
    // Once.
    expect(errors(at, "no bytes of runs removed: they belong to another database")).toEqual([
      expect.stringMatching(
        new RegExp(`"database":"store_other gen_\\w+","blobs":"${own?.id} gen_.*tendon admin runs adopt`),
      ),
    ]);
    await at.place.corrupt(`UPDATE run_store SET id = '${own?.id}'`);
    const { blobs } = at.service.runs;
    const { marker } = blobs;
    blobs.marker = async () => new BlobsDown("away");
    await at.sweep();
    await compare(at.service.runs);
    expect((await at.blobIds()).length).toBe(2);
    expect(errors(at, "no bytes of runs removed: their database is not known").length).toBe(1);
    blobs.marker = marker;
    await at.sweep();
    await compare(at.service.runs);
    await at.sweep(72 * HOUR + 60);
    expect(await at.blobIds()).toEqual([]);
  });

  test("more blobs without a record than crashes leave are not removed but reported", async ({ at }) => {
    await orphans(at, LIMITS.runUnnamedMax + 1);
    await compare(at.service.runs);
    expect((await at.blobIds()).length).toBe(LIMITS.runUnnamedMax + 1);
    expect(errors(at, "blobs without a record not removed")).toEqual([
      expect.stringContaining("tendon admin runs check"),
    ]);
    await rm(blobPath(at.dataDir, "blob_orphan0xx"));
    await compare(at.service.runs);
    await at.sweep(72 * HOUR + 60);
    expect(await at.blobIds()).toEqual([]);
  });

  test("bytes that cannot be removed stop no others, are reported once a turn, and go later", async ({ at, ann }) => {
    await ann.completed("one", { a: "1", b: "2", c: "3" });
    const blobs = await at.blobIds();
    const [stuck = ""] = blobs;
    // A folder is not removed as a file.
    await rm(blobPath(at.dataDir, stuck));
    await mkdir(blobPath(at.dataDir, stuck));
    await ann.erase("one");
    await at.sweep(61);
    expect(await at.blobIds()).toEqual([stuck]);
    expect(await at.rows("SELECT id, at FROM run_blobs")).toEqual([{ id: stuck, at: expect.any(Number) }]);
    expect(errors(at, "bytes of deleted files not removed")).toEqual([
      expect.stringContaining(`{"count":1,"first":"${stuck}"`),
    ]);
    // Not asked for again at once.
    await at.sweep();
    expect(errors(at, "bytes of deleted files not removed").length).toBe(1);
    await rm(blobPath(at.dataDir, stuck), { recursive: true });
    await at.sweep(61);
    expect(await at.rows("SELECT id FROM run_blobs")).toEqual([]);
  });

  test("where many bytes cannot be removed a turn ends, and the next ones come to the others", async ({ at, ann }) => {
    const many = LIMITS.runStuckMax + 2;
    const names = Array.from({ length: many }, (_, index) => `f${index}`);
    await ann.completed("one", Object.fromEntries(names.map((name) => [name, "1"])));
    const stuck = (await at.blobIds()).slice(0, -1);
    for (const id of stuck) {
      await rm(blobPath(at.dataDir, id));
      await mkdir(blobPath(at.dataDir, id));
    }
    await ann.erase("one");
    await at.sweep(61);
    expect(errors(at, "bytes of deleted files not removed")).toEqual([
      expect.stringContaining(`{"count":${LIMITS.runStuckMax}`),
    ]);
    await at.sweep();
    expect(await at.blobIds()).toEqual(stuck);
  });

  test("what an ended process left is found beside any number of files that come here", async ({ at, ann }) => {
    await leave({ at, ann }, "node_gone");
    const { owner, live } = at.service.runs;
    const values = Array.from({ length: 300 }, (_, index) => {
      live.add(`blob_live${index}`);
      return `('blob_live${index}', 'coming', '${ann.accountId}', 'run_other', 'a', 0, '${owner}', ${now({ at })})`;
    });
    const columns = "(id, state, account_id, run_id, path, size, owner, at)";
    await at.place.corrupt(`DELETE FROM run_blobs WHERE owner = '${owner}'`);
    // Before the others in every order.
    await at.place.corrupt("UPDATE run_blobs SET id = 'blob_zz' || id, at = at + 60");
    await at.place.corrupt(`INSERT INTO run_blobs ${columns} VALUES ${values.join(", ")}`);
    await at.sweep(3 * HOUR + 120);
    expect(await at.rows("SELECT id FROM run_blobs WHERE state = 'coming' AND owner = 'node_gone'")).toEqual([]);
    expect(await at.rows("SELECT count(*) AS n FROM run_blobs WHERE state = 'coming'")).toEqual([{ n: 300 }]);
    live.clear();
    await at.place.corrupt("DELETE FROM run_blobs WHERE id LIKE 'blob_live%'");
  });

  test("answers of finished uploads are forgotten in bounded parts, with their own parts", async ({ at }) => {
    const values = (of: (one: number) => string) => Array.from({ length: 150 }, (_, one) => of(one)).join(", ");
    await at.place.corrupt(
      `INSERT INTO run_uploads (id, account_id, run_id, path, blob_id, size, part_size, state, expires_at)
       VALUES ${values((one) => `('up_${one}', 'a', 'r', 'p', 'blob_${one}', 1, 1, '${one === 149 ? "open" : "done"}', 100)`)}`,
    );
    await at.place.corrupt(
      `INSERT INTO run_parts (upload_id, part, tag, size, sha256)
       SELECT id, 1, 't', 1, CAST('0123456789abcdef0123456789abcdef' AS ${combination.engine === "PostgreSQL" ? "BYTEA" : "BLOB"}) FROM run_uploads`,
    );
    expect(await at.store.runs.uploadsForget({ before: 101 })).toBe("more");
    const left = await at.rows("SELECT count(*) AS n FROM run_uploads");
    expect(Number(left[0]?.n)).toBeWithin(2, 150);
    await forgetUploads(at.service.runs);
    expect(await at.rows("SELECT id FROM run_uploads")).toEqual([{ id: "up_149" }]);
    expect(await at.rows("SELECT upload_id FROM run_parts")).toEqual([{ upload_id: "up_149" }]);
    await at.place.corrupt("DELETE FROM run_uploads");
  });

  test("deleted bytes stay for a minute", async ({ at, ann }) => {
    await ann.completed("one", { a: "12345" });
    await ann.erase("one");
    await at.sweep(58);
    expect((await at.blobIds()).length).toBe(1);
    await at.sweep(4);
    expect(await at.blobIds()).toEqual([]);
  });

  test("a request that fails, is cut or is refused leaves no row, no room taken and no bytes", async ({ at, ann }) => {
    const half = ann.halfPut("cut", "a", 10, "12345");
    while ((await at.staged()).length === 0) await Bun.sleep(5);
    expect(await ann.room()).toEqual([0, 10]);
    half.cut();
    while ((await ann.room())[1] !== 0) await Bun.sleep(5);
    const id = await ann.begun("cut", "b", { size: 10 });
    const path = `/v1/robot/runs/arm/cut/uploads/b?upload_id=${id}&part=1`;
    const part = ann.half("PUT", path, ["Content-Length: 10"], "12345");
    while ((await at.staged()).length === 0) await Bun.sleep(5);
    part.cut();
    while ((await at.staged()).length > 0) await Bun.sleep(5);
    expect((await ann.uploads("cut", "b", id)).json).toMatchObject({ received: [] });
    await ann.abort("cut", "b", id);
    await ann.put("cut", "c", "12345", { "x-content-sha256": "0".repeat(64) });
    await ann.put("cut", "d", "1");
    await ann.remove("cut", "d");
    for (const table of ["robot_runs", "run_files", "run_uploads", "run_parts"]) {
      expect([table, await at.rows(`SELECT * FROM ${table}`)]).toEqual([table, []]);
    }
    await at.sweep(61);
    expect([await at.rows("SELECT * FROM run_blobs"), await at.blobIds()]).toEqual([[], []]);
    expect((await ann.erase("cut")).said).toBe("404 run_not_found");
  });

  test("a total that is not the sum of what it counts is found", async ({ at, ann }) => {
    await ann.completed("one", { a: "12345" });
    await ann.begun("two", "a", { size: 7 });
    expect(await at.store.runs.runTotalsWrong()).toEqual([]);
    const totals = [
      ["run_files", "robot_runs", "files"],
      ["run_bytes", "robot_runs", "stored"],
      ["run_reserved", "robot_runs", "reserved"],
      ["run_coming", "robot_runs", "coming"],
      ["run_uploads", "robot_runs", "uploads"],
      ["account_stored", "run_accounts", "stored"],
      ["account_reserved", "run_accounts", "reserved"],
      ["account_completed", "run_accounts", "completed"],
      ["account_runs", "run_accounts", "runs"],
    ] as const;
    for (const [of, table, column] of totals) {
      await at.place.corrupt(`UPDATE ${table} SET ${column} = ${column} + 1`);
      const wrong = await at.store.runs.runTotalsWrong();
      expect(Array.isArray(wrong) && wrong.map((one) => one.of)).toContain(of);
      await at.place.corrupt(`UPDATE ${table} SET ${column} = ${column} - 1`);
    }
    expect(await at.store.runs.runTotalsWrong()).toEqual([]);
  });

  test("the files and joins of a process that does not show that it lives are ended", async ({ at, ann }) => {
    const { service, store } = at;
    const { accountId } = ann;
    const names = { accountId, robot: "arm", run: "one" };
    const file = { ...names, path: "a", runId: "run_x", blobId: "blob_x", size: 7, owner: "node_gone", at: 1 };
    expect(await store.runs.fileBegin({ ...file, ...service.runs.bounds })).toBe("begun");
    const id = await ann.sent("one", "b", "12345");
    const joining = { accountId, uploadId: id, owner: "node_gone", attempt: "join_x", at: 1 };
    const begun = await store.runs.joinBegin({ ...joining, accountBytesMax: LIMITS.runsAccountBytesMax });
    expect(begun).toMatchObject({ upload: { id } });
    expect(await ann.room()).toEqual([0, 7 + 5 + 5]);
    await service.llm.owners.start(false, "node_gone");
    expect(await ann.room()).toEqual([0, 5]);
    expect((await ann.finish("one", "b", id)).status).toBe(200);
  });
});
