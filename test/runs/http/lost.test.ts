/**
 * Parts that the store of bytes has dropped by itself, as a rule of an S3 bucket does with multipart uploads that are some days old.
 * They come again, and nothing waits for ever.
 */
import { expect } from "bun:test";
import { good, RunsPlace } from "../../client/runs-place.ts";
import { fileOf, sha256 } from "../person.ts";
import { MATRIX, onStores, type RunsStage } from "../stage.ts";

const PART = 16 * 2 ** 20;
/** The smallest file of two parts. */
const large = new Uint8Array(PART + 5).map((_, at) => (at * 2_654_435_761) >>> 13);
const parts = [large.subarray(0, PART), large.subarray(PART)] as const;

/** Drops the parts of the run's upload from the store of bytes. */
async function drop(at: RunsStage, run: string): Promise<void> {
  const ofRun = `run_id IN (SELECT id FROM robot_runs WHERE run = '${run}')`;
  const [found] = await at.rows(`SELECT blob_id FROM run_uploads WHERE ${ofRun}`);
  expect(await at.service.runs.blobs.abandon({ id: String(found?.blob_id), token: "" })).toBeUndefined();
}

onStores(MATRIX, {}, (test) => {
  test("a finish without its parts gives its room back, and passes when they have come again", async ({ at, ann }) => {
    const room = await ann.room();
    const id = await ann.sent("again", "whole", "12345", sha256("12345"));
    await drop(at, "again");
    const refused = await ann.finish("again", "whole", id);
    expect(refused).toMatchObject({ said: "409 run_incomplete", message: expect.stringContaining("send them") });
    expect(await ann.room()).toEqual([room[0], room[1] + 5]);
    expect((await ann.uploads("again", "whole", id)).json).toMatchObject({ received: [] });
    expect((await ann.part("again", "whole", id, 1, "12345")).said).toBe("200");
    expect((await ann.finish("again", "whole", id)).said).toBe("200");
    expect((await ann.complete("again", [fileOf("whole", "12345")])).said).toBe("200");
    expect((await ann.get("again", "whole")).bytes).toEqual(new TextEncoder().encode("12345"));
  });

  test("a part that comes after the others were dropped is stored; those come again", async ({ at, ann }) => {
    const id = await ann.begun("rest", "video", { size: large.length });
    await ann.part("rest", "video", id, 1, parts[0]);
    await drop(at, "rest");
    expect((await ann.part("rest", "video", id, 2, parts[1])).said).toBe("200");
    const refused = await ann.finish("rest", "video", id);
    expect(refused).toMatchObject({ said: "409 run_incomplete", message: expect.stringContaining("parts 1 ") });
    expect((await ann.uploads("rest", "video", id)).json).toMatchObject({ received: [{ part: 2, size: 5 }] });
    expect((await ann.part("rest", "video", id, 1, parts[0])).said).toBe("200");
    expect((await ann.finish("rest", "video", id)).said).toBe("200");
    await ann.complete("rest", [fileOf("video", large)]);
    expect(Buffer.compare((await ann.get("rest", "video")).bytes, large)).toBe(0);
  });

  test("two parts that come at once after the others were dropped are both stored", async ({ at, ann }) => {
    const id = await ann.begun("two", "video", { size: large.length });
    await ann.part("two", "video", id, 2, parts[1]);
    await drop(at, "two");
    const answers = await Promise.all(parts.map((bytes, index) => ann.part("two", "video", id, index + 1, bytes)));
    expect(answers.map(({ said }) => said)).toEqual(["200", "200"]);
    expect((await ann.finish("two", "video", id)).said).toBe("200");
    await ann.complete("two", [fileOf("video", large)]);
    expect(Buffer.compare((await ann.get("two", "video")).bytes, large)).toBe(0);
  });

  test("a part that still comes when its upload is aborted and removed is refused", async ({ at, ann }) => {
    const id = await ann.sent("aborted", "a", "1234567890");
    const route = `/v1/robot/runs/arm/aborted/uploads/a?upload_id=${id}&part=1`;
    const half = ann.half("PUT", route, ["Content-Length: 10"], "12345");
    while ((await at.staged()).length === 0) await Bun.sleep(5);
    expect((await ann.abort("aborted", "a", id)).status).toBe(204);
    await at.sweep(61);
    half.write("67890");
    expect(await half.said).toBe("404 upload_not_found");
  });

  test("parts of an upload that another request puts together are not forgotten", async ({ at, ann }) => {
    const id = await ann.sent("joining", "a", "12345");
    const { store, bounds } = at.service.runs;
    const of = { accountId: ann.accountId, uploadId: id };
    const token = String((await at.rows(`SELECT token FROM run_uploads WHERE id = '${id}'`))[0]?.token);
    const join = { ...of, owner: "node_other", accountBytesMax: bounds.accountBytesMax, at: 0 };
    await store.joinBegin({ ...join, attempt: "join_other" });
    expect(await store.uploadLost({ ...of, token })).toBe("joining");
    expect(await store.uploadLost({ ...of, token, attempt: "join_late" })).toBe("joining");
    await store.joinEnd({ ...of, attempt: "join_other", lost: [] });
    expect(await store.uploadLost({ ...of, token: "another" })).toBe("open");
    expect((await ann.uploads("joining", "a", id)).json).toMatchObject({ received: [{ part: 1 }] });
    expect((await ann.finish("joining", "a", id)).said).toBe("200");
    expect(await store.uploadLost({ ...of, token })).toBe("gone");
  });

  test("a push whose parts were dropped sends them again and ends complete", async ({ at, ann }) => {
    await using place = await RunsPlace.at({ ...ann, [Symbol.asyncDispose]: async () => {} });
    const { robot, run } = place.run;
    const bytes = await place.write("long.mp4", 5 * PART);
    place.link.onRequest = (line) => {
      if (line.startsWith("PUT ") && line.endsWith("&part=3")) place.link.cut();
    };
    await place.push({ parallel: 1 });
    place.link.onRequest = () => {};
    place.link.mend();
    await drop(at, run);
    expect(good(await place.push()).state).toBe("completed");
    const stored = await ann.get(`${robot}/${run}`, "long.mp4");
    expect(Buffer.compare(stored.bytes, bytes)).toBe(0);
  });
});
