/** The states of a run and of a multipart upload (specification, "Robot run"; contract section 7), on every pair of stores. */
import { expect } from "bun:test";
import { forgetUploads, sweep } from "../../../src/runs/sweep.ts";
import { fileOf, sha256 } from "../person.ts";
import { MATRIX, onStores, RunsStage } from "../stage.ts";

const DAY = 86_400;
const PART = 16 * 2 ** 20;
/** The smallest file of two parts. */
const large = new Uint8Array(PART + 5).map((_, at) => (at * 2_654_435_761) >>> 13);
const parts = [large.subarray(0, PART), large.subarray(PART)] as const;

onStores(MATRIX, {}, (test) => {
  test("a run in upload is not listed and not readable, a completed one is both", async ({ ann }) => {
    await ann.put("states", "a/log.jsonl", "{}\n");
    await ann.put("states", "video.mp4", "");
    for (const answer of [await ann.manifest("states"), await ann.get("states", "a/log.jsonl")]) {
      expect(answer.said).toBe("404 run_not_found");
    }
    expect((await ann.list()).json.data).toEqual([]);
    const listed = [fileOf("video.mp4", ""), { path: "a/log.jsonl", size: 3 }];
    const completed = await ann.complete("states", listed, { operator: "ann", tries: [1, null] });
    expect(completed.body).toEqual({
      object: "robot.run",
      robot: "arm",
      run: "states",
      completed_at: expect.any(Number),
      size: 3,
      files: [
        { ...fileOf("a/log.jsonl", "{}\n"), content_type: "application/jsonl" },
        { ...fileOf("video.mp4", ""), content_type: "video/mp4" },
      ],
      metadata: { operator: "ann", tries: [1, null] },
    });
    expect((await ann.manifest("states")).body).toEqual(completed.body);
    const { completed_at } = completed.json;
    const row = { robot: "arm", run: "states", size: 3, files: 2, completed_at };
    expect((await ann.list()).body).toEqual({ object: "list", data: [row], has_more: false, next: null });
    expect(new TextDecoder().decode((await ann.get("states", "a/log.jsonl")).bytes)).toBe("{}\n");
    expect((await ann.get("states", "video.mp4")).bytes.length).toBe(0);
    expect((await ann.get("states", "a")).said).toBe("404 file_not_found");
  });

  test("complete needs every listed file with its size and digest, and no stored file unlisted", async ({ ann }) => {
    await ann.put("list", "a", "12345");
    await ann.put("list", "b", "1");
    const [a, b] = [fileOf("a", "12345"), fileOf("b", "1")];
    const wrong = [[a], [a, b, fileOf("c", "")], [{ ...a, size: 4 }, b], [{ ...a, sha256: sha256("54321") }, b]];
    for (const files of wrong) expect((await ann.complete("list", files)).said).toBe("409 run_incomplete");
    expect((await ann.complete("nothing", [a])).said).toBe("409 run_incomplete");
    expect((await ann.manifest("list")).said).toBe("404 run_not_found");
    expect((await ann.complete("list", [b, a])).said).toBe("200");
  });

  test("complete waits for unfinished uploads, of whatever path", async ({ ann }) => {
    await ann.put("open", "a", "12345");
    const id = await ann.begun("open", "b", { size: 1 });
    const refused = await ann.complete("open", [fileOf("a", "12345")]);
    expect(refused).toMatchObject({ said: "409 upload_in_progress", message: expect.stringContaining('"b"') });
    expect((await ann.abort("open", "b", id)).status).toBe(204);
    expect((await ann.complete("open", [fileOf("a", "12345")])).said).toBe("200");
  });

  test("a completed run takes no file, upload or other list; the same list is answered again", async ({ ann }) => {
    const first = await ann.completed("sealed", { a: "12345" });
    const answers = [
      await ann.put("sealed", "a", "12345"),
      await ann.remove("sealed", "a"),
      await ann.begin("sealed", "b", { size: 1 }),
      await ann.complete("sealed", [fileOf("a", "12345"), fileOf("b", "")]),
      await ann.complete("sealed", [{ path: "a", size: 4 }]),
    ];
    expect(answers.map(({ said }) => said)).toEqual(answers.map(() => "409 run_completed"));
    for (const list of [[fileOf("a", "12345")], [{ path: "a", size: 5 }]]) {
      const again = await ann.complete("sealed", list, { other: true });
      expect([again.said, again.body]).toEqual(["200", first.body]);
    }
  });

  test("a run is deleted in any state, with everything under it", async ({ ann }) => {
    await ann.put("gone", "a", "12345");
    await ann.begun("gone", "b", { size: 7 });
    const before = await ann.room();
    expect((await ann.erase("gone")).status).toBe(204);
    expect(await ann.room()).toEqual([before[0] - 5, before[1] - 7]);
    expect((await ann.erase("gone")).said).toBe("404 run_not_found");
    await ann.completed("gone", { a: "x" });
    expect((await ann.erase("gone")).status).toBe(204);
    for (const answer of [await ann.manifest("gone"), await ann.get("gone", "a"), await ann.remove("gone", "a")]) {
      expect(answer.said).toBe("404 run_not_found");
    }
    // Its name is free.
    await ann.completed("gone", { b: "y" });
    expect((await ann.get("gone", "a")).said).toBe("404 file_not_found");
  });

  test("a file is new with 201, replaced with 200, and deleted with 204", async ({ ann }) => {
    const answer = await ann.put("file", "a", "12345", { "x-content-sha256": sha256("12345") });
    expect([answer.said, answer.body]).toEqual(["201", expect.objectContaining(fileOf("a", "12345"))]);
    expect(answer.headers.get("etag")).toBe(`"sha256-${sha256("12345")}"`);
    const room = await ann.room();
    expect((await ann.put("file", "a", "1")).said).toBe("200");
    expect(await ann.room()).toEqual([room[0] - 4, room[1]]);
    expect((await ann.remove("file", "a")).status).toBe(204);
    expect((await ann.put("file", "b", "")).said).toBe("201");
    expect((await ann.remove("file", "a")).said).toBe("404 file_not_found");
    expect((await ann.complete("file", [fileOf("b", "")])).said).toBe("200");
  });

  test("an upload in two parts: started, sent, resumed, finished, and finished again", async ({ ann }) => {
    const path = "videos/top.mp4";
    const [stored, reserved] = await ann.room();
    const begun = await ann.begin("parts", path, { size: large.length, sha256: sha256(large) });
    expect([begun.said, begun.body]).toEqual([
      "201",
      expect.objectContaining({
        upload_id: expect.any(String),
        part_size: PART,
        parts: 2,
        expires_at: expect.any(Number),
      }),
    ]);
    const { upload_id: id, expires_at } = begun.json;
    const facts = { upload_id: id, size: large.length, part_size: PART, expires_at };
    expect(await ann.room()).toEqual([stored, reserved + large.length]);
    expect((await ann.uploads("parts", path)).body).toEqual({ data: [facts] });
    expect((await ann.finish("parts", path, id)).said).toBe("409 run_incomplete");
    const last = await ann.part("parts", path, id, 2, parts[1], { "x-content-sha256": sha256(parts[1]) });
    expect([last.said, last.body]).toEqual(["200", { part: 2, size: 5, sha256: sha256(parts[1]) }]);
    const refused = await ann.finish("parts", path, id);
    expect(refused).toMatchObject({ said: "409 run_incomplete", message: expect.stringContaining("parts 1 ") });
    // Other bytes under its number: they are replaced.
    expect((await ann.part("parts", path, id, 1, new Uint8Array(PART))).said).toBe("200");
    expect((await ann.part("parts", path, id, 1, parts[0])).said).toBe("200");
    const received = [
      { part: 1, size: PART, sha256: sha256(parts[0]) },
      { part: 2, size: 5, sha256: sha256(parts[1]) },
    ];
    expect((await ann.uploads("parts", path, id)).body).toEqual({ ...facts, received });
    const list = { parts: received.map(({ part, sha256 }) => ({ part, sha256 })) };
    const finished = await ann.finish("parts", path, id, list);
    expect([finished.said, finished.body]).toEqual(["200", expect.objectContaining(fileOf(path, large))]);
    expect(finished.headers.get("etag")).toBe(`"sha256-${sha256(large)}"`);
    expect(await ann.room()).toEqual([stored + large.length, reserved]);
    expect((await ann.uploads("parts", path)).json.data).toEqual([]);
    // Who lost the answer resumes, finds that nothing is missing, and finishes again.
    expect((await ann.uploads("parts", path, id)).json).toMatchObject({ upload_id: id, received });
    expect((await ann.finish("parts", path, id)).body).toEqual(finished.body);
    expect((await ann.part("parts", path, id, 2, parts[1])).said).toBe("404 upload_not_found");
    expect((await ann.abort("parts", path, id)).said).toBe("404 upload_not_found");
    await ann.complete("parts", [fileOf(path, large)]);
    expect(Buffer.compare((await ann.get("parts", path)).bytes, large)).toBe(0);
    expect((await ann.finish("parts", path, id)).body).toEqual(finished.body);
  });

  test("wrong parts must come again, a wrong whole ends the upload, and nothing is kept", async ({ at, ann }) => {
    const room = await ann.room();
    const digest = sha256("12345");
    const id = await ann.begun("digest", "a", { size: 5, sha256: digest });
    const other = { "content-digest": `sha-256=:${Buffer.from(sha256("1"), "hex").toString("base64")}:` };
    expect((await ann.part("digest", "a", id, 1, "12345", other)).said).toBe("422 checksum_mismatch");
    expect((await ann.uploads("digest", "a", id)).json).toMatchObject({ received: [] });
    // Damaged before the service could know it.
    expect((await ann.part("digest", "a", id, 1, "12344")).said).toBe("200");
    const listed = { parts: [{ part: 1, sha256: digest }] };
    expect((await ann.finish("digest", "a", id, listed)).said).toBe("422 checksum_mismatch");
    expect((await ann.uploads("digest", "a", id)).json).toMatchObject({ received: [] });
    expect((await ann.finish("digest", "a", id, listed)).said).toBe("409 run_incomplete");
    await ann.part("digest", "a", id, 1, "12344");
    expect((await ann.finish("digest", "a", id)).said).toBe("422 checksum_mismatch");
    expect((await ann.uploads("digest", "a", id)).said).toBe("404 upload_not_found");
    expect(await ann.room()).toEqual(room);
    expect(await at.rows("SELECT * FROM robot_runs WHERE run = 'digest'")).toEqual([]);
  });

  test("an unfinished upload owns its path; aborted it gives path and room back", async ({ ann }) => {
    await ann.put("owned", "a", "old");
    const room = await ann.room();
    const id = await ann.begun("owned", "a", { size: 5 });
    expect((await ann.put("owned", "a", "new")).said).toBe("409 upload_in_progress");
    expect((await ann.begin("owned", "a", { size: 5 })).said).toBe("409 upload_in_progress");
    await ann.part("owned", "a", id, 1, "12345");
    expect((await ann.abort("owned", "a", id)).status).toBe(204);
    expect(await ann.room()).toEqual(room);
    expect((await ann.abort("owned", "a", id)).said).toBe("404 upload_not_found");
    expect((await ann.part("owned", "a", id, 1, "12345")).said).toBe("404 upload_not_found");
    expect((await ann.finish("owned", "a", id)).said).toBe("404 upload_not_found");
    expect((await ann.complete("owned", [fileOf("a", "old")])).said).toBe("200");
  });

  test("unfinished uploads and the answers of finished ones go after 7 days, bytes a minute later", async ({ at }) => {
    await using own = await RunsStage.start({ beside: at });
    const bob = (await at.person()).at(own.url);
    const left = await bob.sent("week", "left", "12345");
    const late = await bob.begun("week", "late", { size: 1 });
    own.clock.aheadSeconds += 7 * DAY - 60;
    await bob.part("week", "late", late, 1, "1");
    expect((await bob.finish("week", "late", late)).said).toBe("200");
    await sweep(own.service.runs);
    expect((await bob.uploads("week", "left", left)).said).toBe("200");
    own.clock.aheadSeconds += 120;
    await sweep(own.service.runs);
    await forgetUploads(own.service.runs);
    expect((await bob.uploads("week", "left", left)).said).toBe("404 upload_not_found");
    expect((await bob.finish("week", "late", late)).said).toBe("200");
    expect(await bob.room()).toEqual([1, 0]);
    own.clock.aheadSeconds += 7 * DAY;
    await forgetUploads(own.service.runs);
    expect((await bob.finish("week", "late", late)).said).toBe("404 upload_not_found");
    await sweep(own.service.runs);
    const kept = await at.rows(
      "SELECT blob_id AS id FROM run_files UNION SELECT blob_id FROM run_uploads WHERE state <> 'done'",
    );
    expect(await at.blobIds()).toEqual(kept.map(({ id }) => String(id)).sort());
    expect(await at.rows("SELECT * FROM run_blobs")).toEqual([]);
    const orphans = "SELECT * FROM run_parts WHERE upload_id NOT IN (SELECT id FROM run_uploads)";
    expect(await at.rows(orphans)).toEqual([]);
    own.clock.aheadSeconds = 0;
  });
});
