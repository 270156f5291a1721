/** Each limit of run storage (specification, "Limits") at its edge and one past it. */
import { expect } from "bun:test";
import { fileOf, type Person } from "../person.ts";
import { DEFAULT, MATRIX, onStores, RECORDS } from "../stage.ts";

const KiB = 1024;
const MiB = 2 ** 20;
const GiB = 2 ** 30;
const x = (count: number) => "x".repeat(count);

/** Small bounds of the records. */
const BOUNDS = { runBytesMax: 1_000, runFilesMax: 3, runUploadsMax: 2, accountBytesMax: 1_500 + 8 * KiB };

onStores(MATRIX, { bounds: BOUNDS }, (test) => {
  test("the bytes of a run: files and uploads together", async ({ ann }) => {
    expect((await ann.put("one", "a", x(1_001))).said).toBe("413 run_too_large");
    expect((await ann.put("one", "a", x(450))).said).toBe("201");
    expect((await ann.begin("one", "b", { size: 551 })).said).toBe("413 run_too_large");
    const id = await ann.begun("one", "b", { size: 550 });
    expect((await ann.put("one", "c", "1")).said).toBe("413 run_too_large");
    expect((await ann.put("one", "c", "")).said).toBe("201");
    // A path counts once, however often it is replaced, and while it is.
    expect((await ann.put("one", "a", x(450))).said).toBe("200");
    expect((await ann.put("one", "a", x(451))).said).toBe("413 run_too_large");
    await ann.abort("one", "b", id);
    expect((await ann.put("one", "a", x(451))).said).toBe("200");
    expect(await ann.room()).toEqual([451, 0]);
  });

  test("a full run can be sent anew, its files side by side", async ({ ann }) => {
    await ann.put("one", "video", x(700));
    await ann.put("one", "log", x(10));
    await ann.put("one", "map", x(10));
    const id = await ann.begun("one", "video", { size: 700 });
    expect((await ann.put("one", "log", x(20))).said).toBe("200");
    expect((await ann.begin("one", "map", { size: 281 })).said).toBe("413 run_too_large");
    expect((await ann.begin("one", "map", { size: 30 })).said).toBe("201");
    expect((await ann.put("one", "other", "")).said).toBe("413 run_too_large");
    await ann.part("one", "video", id, 1, x(700));
    await ann.erase("one");
  });

  test("the files of a run: those that are there and those that come", async ({ ann }) => {
    await ann.put("one", "a", "1");
    await ann.put("one", "b", "1");
    const id = await ann.begun("one", "c", { size: 1 });
    expect((await ann.put("one", "d", "1")).said).toBe("413 run_too_large");
    expect((await ann.begin("one", "d", { size: 1 })).said).toBe("413 run_too_large");
    expect((await ann.put("one", "a", "2")).said).toBe("200");
    await ann.part("one", "c", id, 1, "1");
    expect((await ann.finish("one", "c", id)).said).toBe("200");
    expect((await ann.put("one", "d", "1")).said).toBe("413 run_too_large");
    await ann.remove("one", "a");
    expect((await ann.put("one", "d", "1")).said).toBe("201");
  });

  test("the unfinished uploads of a run, told before its room", async ({ ann }) => {
    const first = await ann.begun("one", "a", { size: 1 });
    await ann.begun("one", "b", { size: 1 });
    for (const size of [1, 1_001, 2_000]) {
      expect((await ann.begin("one", "c", { size })).said).toBe("429 too_many_uploads");
    }
    expect((await ann.begin("one", "a", { size: 1 })).said).toBe("409 upload_in_progress");
    expect((await ann.begin("two", "c", { size: 1 })).said).toBe("201");
    await ann.part("one", "a", first, 1, "1");
    await ann.finish("one", "a", first);
    expect((await ann.begin("one", "c", { size: 1 })).said).toBe("201");
  });

  test("the bytes of an account: runs, reservations, and a replaced file beside its replacement", async ({ ann }) => {
    // Its three records leave room for five.
    for (const path of ["a", "b"]) await ann.put("empty", path, "");
    await ann.put("one", "a", x(900));
    const id = await ann.begun("two", "a", { size: 500 });
    expect((await ann.put("two", "b", x(101))).said).toBe("413 storage_quota_exceeded");
    expect((await ann.begin("three", "b", { size: 101 })).said).toBe("413 storage_quota_exceeded");
    expect((await ann.put("one", "a", x(101))).said).toBe("413 storage_quota_exceeded");
    expect((await ann.put("two", "b", x(100))).said).toBe("201");
    // Putting it together needs room for a copy: the upload is kept, until there is some.
    await ann.part("two", "a", id, 1, x(500));
    expect((await ann.finish("two", "a", id)).said).toBe("413 storage_quota_exceeded");
    expect((await ann.uploads("two", "a", id)).json).toMatchObject({ received: [{ part: 1, size: 500 }] });
    expect(await ann.room()).toEqual([1_000, 500]);
    await ann.erase("one");
    expect((await ann.finish("two", "a", id)).said).toBe("200");
    expect(await ann.room()).toEqual([600, 0]);
  });
});

const SMALL = { accountBytesMax: 7 * KiB, accountRunsMax: 3 };

onStores(RECORDS, { bounds: SMALL }, (test) => {
  const used = async (ann: Person) => {
    const { stored_bytes, reserved_bytes } = (await ann.usage()).json;
    return [stored_bytes, reserved_bytes];
  };

  test("whatever is kept because of a run counts, and its deletion gives everything back", async ({ ann }) => {
    const id = await ann.begun("one", "a", { size: 10 });
    expect(await used(ann)).toEqual([2 * KiB, 10]);
    await ann.part("one", "a", id, 1, x(10));
    await ann.finish("one", "a", id);
    await ann.put("one", "b", "");
    await ann.put("one", "b", "");
    expect(await used(ann)).toEqual([3 * KiB + 10, 0]);
    const half = ann.halfPut("one", "c", 100, "1");
    while ((await used(ann))[1] !== KiB + 100) await Bun.sleep(5);
    half.cut();
    while ((await used(ann))[1] !== 0) await Bun.sleep(5);
    await ann.remove("one", "b");
    const manifest = await ann.complete("one", [fileOf("a", x(10))], { note: "größe" });
    expect(await used(ann)).toEqual([2 * KiB + 10 + manifest.bytes.length, 0]);
    await ann.abort("two", "a", await ann.begun("two", "a", { size: 10 }));
    expect((await used(ann))[0]).toBe(2 * KiB + 10 + manifest.bytes.length);
    await ann.begun("two", "a", { size: 10 });
    for (const run of ["one", "two"]) await ann.erase(run);
    expect(await used(ann)).toEqual([0, 0]);
  });

  test("a manifest that does not fit into the quota is refused, and the run stays unfinished", async ({ ann }) => {
    await ann.put("one", "a", "");
    const metadata = { text: x(5 * KiB) };
    const refused = await ann.complete("one", [fileOf("a", "")], metadata);
    expect([refused.said, await used(ann)]).toEqual(["413 storage_quota_exceeded", [2 * KiB, 0]]);
    expect((await ann.manifest("one")).said).toBe("404 run_not_found");
    const fits = { text: x(4 * KiB) };
    for (let times = 0; times < 2; times += 1) {
      expect((await ann.complete("one", [fileOf("a", "")], fits)).said).toBe("200");
    }
    expect((await ann.put("two", "a", "")).said).toBe("413 storage_quota_exceeded");
  });

  test("an account has a bounded number of runs, unfinished ones included", async ({ ann }) => {
    await ann.completed("one", { a: "" });
    await ann.put("two", "a", "");
    await ann.erase("one");
    await ann.begun("three", "a", { size: 1 });
    await ann.put("four", "a", "");
    expect((await ann.put("five", "a", "")).said).toBe("413 run_too_large");
    expect((await ann.begin("five", "a", { size: 1 })).said).toBe("413 run_too_large");
    await ann.remove("two", "a");
    expect((await ann.begin("five", "a", { size: 1 })).said).toBe("201");
    for (const run of ["three", "four", "five"]) await ann.erase(run);
  });
});

/** The real bounds. */
onStores(DEFAULT, {}, (test) => {
  test("a file of 64 MiB in one request, and no byte more; no part that is larger", async ({ ann }) => {
    const bytes = new Uint8Array(64 * MiB + 1).fill(7);
    const file = bytes.subarray(0, 64 * MiB);
    expect((await ann.put("file", "a", file)).said).toBe("201");
    const room = await ann.room();
    const size = [`Content-Length: ${bytes.length}`];
    expect(await ann.halfPut("file", "b", bytes.length, "").said).toBe("413 request_too_large");
    const id = await ann.begun("file", "c", { size: 65 * MiB });
    const part = `/v1/robot/runs/arm/file/uploads/c?upload_id=${id}&part=1`;
    expect(await ann.half("PUT", part, size).said).toBe("413 request_too_large");
    await ann.abort("file", "c", id);
    expect(await ann.room()).toEqual(room);
    expect((await ann.complete("file", [fileOf("a", file)])).said).toBe("200");
    expect(Buffer.compare((await ann.get("file", "a")).bytes, file)).toBe(0);
    await ann.erase("file");
  });

  test("a JSON body of 1 MiB, 64 levels deep, of 20,000 values, and no more", async ({ ann }) => {
    await ann.put("json", "a", "1");
    const complete = (body: string) => ann.send("POST", "/v1/robot/runs/arm/json/complete", body);
    const padded = (length: number) => JSON.stringify({ files: [fileOf("a", "1")] }).padEnd(length);
    const deep = (levels: number) => `{"files":[],"metadata":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
    expect((await complete(padded(MiB + 1))).said).toBe("413 request_too_large");
    expect((await complete(deep(65))).json.error.message).toContain("64");
    expect((await complete(deep(64))).json.error).toMatchObject({ param: "files" });
    const values = (count: number) => complete(JSON.stringify({ files: [], metadata: { a: Array(count).fill(0) } }));
    expect((await values(20_000)).json.error).not.toHaveProperty("param");
    expect((await values(19_900)).json.error).toMatchObject({ param: "files" });
    expect((await complete(padded(MiB))).said).toBe("200");
    await ann.put("json-2", "a", "1");
    // The size as JSON without spaces, of which 10 bytes are its braces and its name.
    const metadata = (bytes: number) => JSON.stringify({ files: [fileOf("a", "1")], metadata: { pad: x(bytes - 10) } });
    const meta = (bytes: number) => ann.send("POST", "/v1/robot/runs/arm/json-2/complete", metadata(bytes));
    expect((await meta(64 * KiB + 1)).json.error).toMatchObject({ code: "invalid_request", param: "metadata" });
    expect((await meta(64 * KiB)).said).toBe("200");
    const upload = await ann.send("POST", "/v1/robot/runs/arm/json-2/uploads/a", `{"size":1}${" ".repeat(MiB)}`);
    expect(upload.said).toBe("413 request_too_large");
  });

  test("a run of 2 GiB, and an account of 100 GiB", async ({ ann }) => {
    expect((await ann.begin("one", "a", { size: 2 * GiB + 1 })).said).toBe("413 run_too_large");
    expect((await ann.begin("one", "a", { size: 2 * GiB - 5 })).said).toBe("201");
    expect((await ann.put("one", "b", "123456")).said).toBe("413 run_too_large");
    expect((await ann.put("one", "b", "12345")).said).toBe("201");
    for (let run = 2; run <= 49; run += 1) {
      expect((await ann.begin(`run-${run}`, "a", { size: 2 * GiB })).json).toMatchObject({ parts: 128 });
    }
    // The records of 50 runs, 50 uploads and a file count as well.
    const records = 101 * KiB;
    expect((await ann.begin("run-50", "a", { size: 2 * GiB - records })).said).toBe("201");
    expect(await ann.room()).toEqual([5, 100 * GiB - records - 5]);
    expect((await ann.begin("run-51", "a", { size: 1 })).said).toBe("413 storage_quota_exceeded");
    expect((await ann.put("run-51", "a", "")).said).toBe("413 storage_quota_exceeded");
  });

  test("2,000 files, which can be completed with one list", async ({ at, ann }) => {
    await ann.put("many", "f0", "");
    // 1,998 more, as if they had come.
    const made = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1998)";
    const run = "(SELECT id FROM robot_runs WHERE run = 'many')";
    await at.place.corrupt(`INSERT INTO run_files (run_id, path, blob_id, size, sha256, stored_at, replaced)
      ${made} SELECT ${run}, 'f' || i, 'blob_many' || i, 0, zeroblob(32), 0, 0 FROM n`);
    await at.place.corrupt("UPDATE robot_runs SET files = 1999 WHERE run = 'many'");
    await at.place.corrupt(
      `UPDATE run_accounts SET stored = stored + 1998 * 1024 WHERE account_id = '${ann.accountId}'`,
    );
    expect((await ann.put("many", "f1999", "")).said).toBe("201");
    expect((await ann.put("many", "f2000", "")).said).toBe("413 run_too_large");
    expect((await ann.begin("many", "f2000", { size: 1 })).said).toBe("413 run_too_large");
    const files = Array.from({ length: 2_000 }, (_, index) => ({ path: `f${index}`, size: 0 }));
    const both = await Promise.all(["f0", "f1999"].map((path) => ann.put("many", path, "")));
    expect(both.map(({ said }) => said)).toEqual(["200", "200"]);
    expect((await ann.complete("many", files.slice(1))).said).toBe("409 run_incomplete");
    expect((await ann.complete("many", files)).json.files.length).toBe(2_000);
    await ann.erase("many");
  });

  test("16 unfinished uploads of a run", async ({ ann }) => {
    for (let count = 1; count <= 16; count += 1) await ann.begun("one", `a${count}`, { size: 1 });
    const refused = await ann.begin("one", "a17", { size: 1 });
    expect([refused.said, refused.json.error.type]).toEqual(["429 too_many_uploads", "rate_limit_error"]);
  });

  test("names of 128 characters of their alphabet", async ({ ann }) => {
    const names = ["a", "0", "A.b_c-d", x(128)];
    const wrong = [x(129), ".a", "_a", "-a", "a%20b", "a%2fb", "%c3%a4", "a%00", "a*"];
    for (const [list, said] of [
      [names, "404 run_not_found"],
      [wrong, "422 invalid_request"],
    ] as const) {
      for (const name of list) {
        for (const run of [`${name}/one`, `arm/${name}`])
          expect([run, (await ann.manifest(run)).said]).toEqual([run, said]);
      }
    }
  });

  test("paths of 512 bytes of UTF-8 and 16 segments, in an address as in a list", async ({ ann }) => {
    const right = ["b", "…", ".a", "a..", "a b?#%&+", "ä".repeat(256), x(512), Array(16).fill("a").join("/")];
    const wrong = [`${"ä".repeat(256)}a`, x(513), Array(17).fill("a").join("/"), "a\\b", "a\nb", "a\u007f", "a\u0085"];
    for (const path of right) {
      expect([path, (await ann.put("paths", path, path)).said]).toEqual([path, "201"]);
    }
    for (const path of wrong) {
      expect([path, (await ann.put("paths", path, "")).said]).toEqual([path, "422 invalid_request"]);
      expect([path, (await ann.uploads("paths", path)).said]).toEqual([path, "422 invalid_request"]);
    }
    for (const path of [...wrong, "", "/a", "a/", "a//b", ".", "a/../b", "\ud800", 1, null]) {
      const { said, json } = await ann.complete("paths", [{ path: path as string, size: 1 }]);
      expect([path, said, json.error.param]).toEqual([path, "422 invalid_request", "files[0].path"]);
    }
    expect(
      (
        await ann.complete(
          "paths",
          right.map((path) => fileOf(path, path)),
        )
      ).said,
    ).toBe("200");
    for (const path of right) expect((await ann.get("paths", path)).bytes).toEqual(new TextEncoder().encode(path));
  });

  test("a run that no file system can hold is not completed: a path that is a folder of another one", async ({
    ann,
  }) => {
    const paths = ["a.b", "a/b/c", "ab", "a-b/c"];
    for (const path of [...paths, "a/b"]) await ann.put("folders", path, path);
    const list = paths.map((path) => fileOf(path, path));
    for (const files of [
      [...list, fileOf("a/b", "a/b")],
      [fileOf("a/b", "a/b"), ...list],
    ]) {
      const { said, json } = await ann.complete("folders", files);
      const param = `files[${files.findIndex(({ path }) => path === "a/b/c")}].path`;
      expect([said, json.error.param]).toEqual(["422 invalid_request", param]);
      expect(json.error.message).toStartWith('"a/b" is a file and a folder of "a/b/c"');
    }
    await ann.remove("folders", "a/b");
    expect((await ann.complete("folders", list)).said).toBe("200");
  });

  test("fields that break their format are 422 with their name", async ({ ann }) => {
    const complete: readonly (readonly [unknown, string])[] = [
      [{}, "files"],
      [{ files: [] }, "files"],
      [{ files: {} }, "files"],
      [{ files: [1] }, "files[0]"],
      [{ files: [{ path: "a", size: -1 }] }, "files[0].size"],
      [{ files: [{ path: "a", size: 1.5 }] }, "files[0].size"],
      [{ files: [{ path: "a", size: "1" }] }, "files[0].size"],
      [{ files: [{ path: "a", size: 1, sha256: x(64) }] }, "files[0].sha256"],
      [{ files: [{ path: "a", size: 1, sha256: ["0".repeat(64)] }] }, "files[0].sha256"],
      [{ files: [fileOf("a", ""), fileOf("a", "")] }, "files[1].path"],
      [{ files: [fileOf("a", "")], metadata: [] }, "metadata"],
      [{ files: [fileOf("a", "")], metadata: "x" }, "metadata"],
    ];
    for (const [body, param] of complete) {
      const { said, json } = await ann.send("POST", "/v1/robot/runs/arm/fields/complete", JSON.stringify(body));
      expect([body, said, json.error.param]).toEqual([body, "422 invalid_request", param]);
    }
    for (const size of [0, -1, 1.5, "1", null, undefined, 2 ** 53]) {
      const { said, json } = await ann.begin("fields", "a", { size });
      expect([size, said, json.error.param]).toEqual([size, "422 invalid_request", "size"]);
    }
    for (const sha256 of ["", x(64), 1, {}, ["0".repeat(64)]]) {
      const { said, json } = await ann.begin("fields", "a", { size: 1, sha256 });
      expect([sha256, said, json.error.param]).toEqual([sha256, "422 invalid_request", "sha256"]);
    }
    // `null` equals absence.
    expect((await ann.begin("fields", "null", { size: 1, sha256: null })).said).toBe("201");
    const id = await ann.begun("fields", "a", { size: 5 });
    for (const part of ["0", "2", "129", "x", "", "1.0", "-1", "1&part=1"]) {
      const { said, json } = await ann.part("fields", "a", id, part, "12345");
      expect([part, said, json.error.param]).toEqual([part, "422 invalid_request", "part"]);
    }
    for (const bytes of ["1234", "123456", ""]) {
      expect([bytes, (await ann.part("fields", "a", id, 1, bytes)).said]).toEqual([bytes, "422 invalid_request"]);
    }
    const digest = fileOf("", "12345").sha256;
    for (const parts of [{}, [1], [{ part: 1 }], [{ part: 0, sha256: digest }], [{ part: 2, sha256: digest }]]) {
      expect([parts, (await ann.finish("fields", "a", id, { parts })).said]).toEqual([parts, "422 invalid_request"]);
    }
    for (const [method, path] of [
      ["PUT", "uploads/a?part=1"],
      ["PUT", `uploads/a?upload_id=${id}`],
      ["PUT", "uploads/a?upload_id=&part=1"],
      ["DELETE", "uploads/a"],
      ["GET", `uploads/a?upload_id=${id}&upload_id=${id}`],
    ] as const) {
      const body = method === "PUT" ? { body: "12345" } : {};
      const { said } = await ann.send(method, `/v1/robot/runs/arm/fields/${path}`, body.body);
      expect([method, path, said]).toEqual([method, path, "422 invalid_request"]);
    }
  });
});
