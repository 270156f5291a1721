/** Requests that meet: each pair has one of few outcomes, and never half of one. */
import { expect } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Answer, fileOf, type Person, sha256 } from "../person.ts";
import { MATRIX, onStores, RECORDS, type RunsStage } from "../stage.ts";

/** Bytes that name their writer. */
const mark = (writer: number, size: number) => new Uint8Array(size).fill(writer + 1);

/** Repeats a request until it has a permit, of which an account has fewer than a hundred. */
async function untilTaken(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.said !== "503 storage_busy") return answer;
    await Bun.sleep(20);
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** After the time for which deleted bytes stay, the store of bytes has those of the records and no others. */
async function expectNothingOver(at: RunsStage): Promise<void> {
  await at.sweep(61);
  const named = await at.rows("SELECT blob_id AS id FROM run_files ORDER BY blob_id");
  expect(await at.blobIds()).toEqual(named.map(({ id }) => String(id)));
  expect(await at.rows("SELECT * FROM run_blobs")).toEqual([]);
  expect(await at.wrong()).toEqual([]);
}

/** The bytes of 50 files, and the records of these and of 7 runs. */
const ACCOUNT_BYTES = 1_000_000 + 57 * 1024;

onStores(RECORDS, { bounds: { accountBytesMax: ACCOUNT_BYTES } }, (test) => {
  test("one of many writers of one path wins whole; nothing of the others stays", async ({ at, ann }) => {
    const size = 40_000;
    const answers = await Promise.all(upTo(16).map((writer) => ann.put("one", "a", mark(writer, size))));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(15).fill(200), 201]);
    await ann.complete("one", [{ path: "a", size }]);
    const { bytes, headers } = await ann.get("one", "a");
    const winner = mark((bytes[0] ?? 0) - 1, size);
    expect(Buffer.compare(bytes, winner)).toBe(0);
    expect(headers.get("etag")).toBe(`"sha256-${sha256(winner)}"`);
    expect(await ann.room()).toEqual([size, 0]);
    await expectNothingOver(at);
  });

  test("complete against a file that comes: it is in the manifest, or it is refused", async ({ at, ann }) => {
    const old = fileOf("a", "old");
    const met = new Set<string>();
    for (const round of upTo(24)) {
      const run = `meet-${round}`;
      await ann.put(run, "a", "old");
      const path = round % 2 === 0 ? "a" : "b";
      // One begins some time before the other.
      const put = Bun.sleep(round % 3).then(() => ann.put(run, path, "new"));
      const [stored, complete] = await Promise.all([put, Bun.sleep(round % 5).then(() => ann.complete(run, [old]))]);
      met.add(`${stored.said}, ${complete.said}`);
      const won = stored.status < 300;
      expect(complete.said).toBe(won ? "409 run_incomplete" : "200");
      if (!won) expect(stored.said).toBe("409 run_completed");
      const files = won ? { ...(path === "b" && { a: "old" }), [path]: "new" } : { a: "old" };
      const list = Object.entries(files).map(([name, bytes]) => fileOf(name, bytes));
      expect((await ann.complete(run, list)).json.files).toMatchObject(list);
    }
    expect(met.size).toBeGreaterThan(0);
    await expectNothingOver(at);
  });

  test("a file that still comes when its run is completed or deleted is refused and removed", async ({ at, ann }) => {
    for (const [run, end, said] of [
      ["done", () => ann.complete("done", [fileOf("a", "1")]), "409 run_completed"],
      ["erased", () => ann.erase("erased"), "404 run_not_found"],
    ] as const) {
      await ann.put(run, "a", "1");
      const half = ann.halfPut(run, "b", 10, "12345");
      while ((await ann.room())[1] !== 10) await Bun.sleep(5);
      expect((await end()).status).toBeWithin(200, 205);
      half.write("67890");
      expect(await half.said).toBe(said);
      expect((await ann.room())[1]).toBe(0);
    }
    await expectNothingOver(at);
  });

  test("a deletion of a run ends its uploads, also one that is being finished", async ({ at, ann }) => {
    const id = await ann.sent("erased", "a", "12345");
    const held = holdJoins(at);
    const finishing = ann.finish("erased", "a", id);
    await held.reached;
    expect(await ann.room()).toEqual([0, 10]);
    expect((await ann.erase("erased")).status).toBe(204);
    held.release();
    expect((await finishing).said).toBe("404 upload_not_found");
    expect(await ann.room()).toEqual([0, 0]);
    await expectNothingOver(at);
  });

  test("a quota raced by 100 files, and by 100 uploads, takes exactly as many as fit", async ({ at, ann }) => {
    const size = 20_000;
    const fit = 1_000_000 / size;
    const ways = [
      (who: Person, index: number) => who.put(`run-${index % 7}`, `file-${index}`, mark(index, size)),
      (who: Person, index: number) => who.begin(`run-${index % 7}`, `file-${index}`, { size }),
    ];
    for (const way of ways) {
      let most = 0;
      const looks = (async () => {
        for (let look = 0; look < 10; look += 1) {
          const { json } = await untilTaken(() => ann.usage());
          most = Math.max(most, json.stored_bytes + json.reserved_bytes);
        }
      })();
      const answers = await Promise.all(upTo(100).map((index) => untilTaken(() => way(ann, index))));
      await looks;
      const count = (said: string) => answers.filter((answer) => answer.said === said).length;
      expect([count("201"), count("413 storage_quota_exceeded")]).toEqual([fit, 100 - fit]);
      expect(most).toBeLessThanOrEqual(ACCOUNT_BYTES);
      const [stored, reserved] = await ann.room();
      expect(stored + reserved).toBe(1_000_000);
      for (const index of upTo(7)) await ann.erase(`run-${index}`);
      expect(await ann.room()).toEqual([0, 0]);
    }
    await expectNothingOver(at);
  });

  test("one of several that finish an upload at once does it, beside the sweep", async ({ at, ann }) => {
    const id = await ann.sent("twice", "a", "12345");
    const held = holdJoins(at);
    const said: string[] = [];
    const all = upTo(6).map(async () => said.push((await ann.finish("twice", "a", id)).said));
    while (said.length < 5) await Bun.sleep(5);
    for (const refused of [
      await ann.finish("twice", "a", id),
      await ann.part("twice", "a", id, 1, "54321"),
      await ann.abort("twice", "a", id),
      await ann.put("twice", "a", "54321"),
    ]) {
      expect(refused.said).toBe("409 upload_in_progress");
    }
    await at.sweep();
    expect(await ann.room()).toEqual([0, 10]);
    held.release();
    await Promise.all(all);
    expect(said).toEqual([...Array(5).fill("409 upload_in_progress"), "200"]);
    expect((await ann.finish("twice", "a", id)).said).toBe("200");
    await ann.complete("twice", [fileOf("a", "12345")]);
    await expectNothingOver(at);
  });

  test("the same part twice at once: one of them counts, and the other's bytes go", async ({ at, ann }) => {
    const id = await ann.begun("part", "a", { size: 30_000 });
    const answers = await Promise.all(upTo(6).map((writer) => ann.part("part", "a", id, 1, mark(writer, 30_000))));
    expect(answers.map(({ said }) => said)).toEqual(answers.map(() => "200"));
    const [blob = { id: "" }] = await at.rows("SELECT blob_id AS id FROM run_uploads WHERE state = 'open'");
    expect((await readdir(join(at.dataDir, "parts", String(blob.id)))).length).toBe(1);
    expect((await ann.finish("part", "a", id)).said).toBe("200");
    await ann.complete("part", [{ path: "a", size: 30_000 }]);
    const { bytes } = await ann.get("part", "a");
    expect(Buffer.compare(bytes, mark((bytes[0] ?? 0) - 1, 30_000))).toBe(0);
    await expectNothingOver(at);
  });
});

const ON_SQLITE = MATRIX.filter(({ engine }) => engine === "SQLite");

onStores(ON_SQLITE, { fresh: true }, (test) => {
  test("a download of a run that is deleted ends whole or breaks, and never has other bytes", async ({ at, ann }) => {
    // More than the buffers of a connection.
    const bytes = new Uint8Array(24 * 2 ** 20).map((_, index) => (index * 2_654_435_761) >>> 11);
    await ann.completed("one", { a: bytes });
    const headers = { authorization: `Bearer ${ann.key}` };
    const response = await fetch(`${ann.url}/v1/robot/runs/arm/one/files/a`, { headers });
    const reader = response.body?.getReader();
    const first = (await reader?.read())?.value ?? new Uint8Array();
    expect((await ann.erase("one")).status).toBe(204);
    await at.sweep(61);
    expect(await at.blobIds()).toEqual([]);
    const pieces: Uint8Array[] = [first];
    let whole = true;
    for (;;) {
      const piece = await reader?.read().catch(() => {
        whole = false;
      });
      if (!piece || piece.done) break;
      pieces.push(piece.value);
    }
    const came = Buffer.concat(pieces);
    if (whole) expect(came.length).toBe(bytes.length);
    expect(Buffer.compare(came, bytes.subarray(0, came.length))).toBe(0);
    expect((await ann.get("one", "a")).said).toBe("404 run_not_found");
    // The log reports a broken download.
    at.logged.length = 0;
  });
});

/** Uploads that are put together wait, until they are released. */
function holdJoins(at: RunsStage) {
  const { blobs } = at.service.runs;
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const join = blobs.join.bind(blobs);
  blobs.join = async (...given) => {
    reached.resolve();
    await released.promise;
    return await join(...given);
  };
  const release = () => {
    blobs.join = join;
    released.resolve();
  };
  return { reached: reached.promise, release };
}
