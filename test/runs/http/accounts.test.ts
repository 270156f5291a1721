/** Two accounts: what one has, the other can neither see, nor guess, nor touch; on every pair of stores. */
import { expect } from "bun:test";
import { type Answer, fileOf } from "../person.ts";
import { MATRIX, onStores } from "../stage.ts";

/** An answer without what differs in every answer. */
function bare({ status, headers, bytes, json }: Answer) {
  const rest = Object.fromEntries(
    [...headers].filter(([name]) => !["x-request-id", "date", "server-timing"].includes(name)),
  );
  return { status, rest, body: json ?? [...bytes] };
}

onStores(MATRIX, {}, (test) => {
  test("the same names do not collide", async ({ at, ann }) => {
    const bob = await at.person();
    await ann.completed("one", { a: "of ann" });
    await bob.completed("one", { a: "of bob" });
    const texts = await Promise.all(
      [ann, bob].map(async (who) => new TextDecoder().decode((await who.get("one", "a")).bytes)),
    );
    expect(texts).toEqual(["of ann", "of bob"]);
    expect((await ann.erase("one")).status).toBe(204);
    expect((await bob.manifest("one")).json.files).toMatchObject([fileOf("a", "of bob")]);
    expect((await ann.list()).json.data).toEqual([]);
    expect([await ann.room(), await bob.room()]).toEqual([
      [0, 0],
      [6, 0],
    ]);
    const ids = [await ann.begun("two", "a", { size: 1 }), await bob.begun("two", "a", { size: 1 })] as const;
    expect((await ann.finish("two", "a", ids[1])).said).toBe("404 upload_not_found");
    await bob.abort("two", "a", ids[1]);
    await ann.abort("two", "a", ids[0]);
  });

  test("every route answers the names of another account as it answers unknown ones", async ({ at, ann }) => {
    const bob = await at.person();
    await ann.completed("done", { file: "12345" });
    await ann.put("open", "file", "12345");
    const id = await ann.sent("open", "upload", "12345");
    const unknown = "up_000000000000000000000000";
    const routes: readonly ((run: string, file: string, upload: string, id: string) => Promise<Answer>)[] = [
      (run) => bob.manifest(run),
      (run) => bob.erase(run),
      (run, file) => bob.get(run, file),
      (run, file) => bob.get(run, file, { range: "bytes=9-", "if-none-match": "*" }),
      (run, file) => bob.send("HEAD", `/v1/robot/runs/arm/${run}/files/${file}`),
      (run, file) => bob.remove(run, file),
      (run, file) => bob.complete(run, [{ path: file.replaceAll("none", "file"), size: 5 }]),
      (run, _, upload) => bob.uploads(run, upload),
      (run, _, upload, at) => bob.uploads(run, upload, at),
      (run, _, upload, at) => bob.part(run, upload, at, 1, "12345"),
      (run, _, upload, at) => bob.part(run, upload, at, 2, "12345"),
      (run, _, upload, at) => bob.finish(run, upload, at),
      (run, _, upload, at) => bob.finish(run, upload, at, { parts: [{ part: 9, sha256: "0".repeat(64) }] }),
      (run, _, upload, at) => bob.abort(run, upload, at),
    ];
    for (const [index, ask] of routes.entries()) {
      const answer = bare(await ask("none", "none", "none", unknown));
      for (const run of ["done", "open"]) {
        expect([index, run, bare(await ask(run, "file", "upload", id))]).toEqual([index, run, answer]);
      }
    }
    expect((await ann.uploads("open", "upload", id)).json).toMatchObject({ received: [{ part: 1 }] });
    await ann.abort("open", "upload", id);
    expect((await ann.manifest("done")).said).toBe("200");
  });

  test("an upload's id is unknown under another path, another run, and in no form that an id has", async ({ ann }) => {
    const id = await ann.begun("ids", "a/b", { size: 5 });
    await ann.put("ids-2", "x", "1");
    for (const [run, path, given] of [
      ["ids", "a/c", id],
      ["ids", "a", id],
      ["ids-2", "a/b", id],
      ["Arm/ids", "a/b", id],
      ["ids", "a/b", id.toLowerCase()],
      ["ids", "a/b", `${id}%00`],
      ["ids", "a/b", "%00"],
      ["ids", "a/b", "'"],
      ["ids", "a/b", "x".repeat(5_000)],
    ] as const) {
      const answers = [
        await ann.uploads(run, path, given),
        await ann.part(run, path, given, 1, "12345"),
        await ann.finish(run, path, given),
        await ann.abort(run, path, given),
      ];
      expect([given, ...answers.map(({ said }) => said)]).toEqual([given, ...Array(4).fill("404 upload_not_found")]);
    }
    expect((await ann.abort("ids", "a/b", id)).status).toBe(204);
  });
});
