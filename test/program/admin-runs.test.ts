/** `tendon admin runs check` as its user has it: beside a service that runs, on both stores of records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../src/limits.ts";
import { ENGINES, place, startServer, stopServer } from "../store/engines.ts";
import { Place } from "./program.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

test("a restored database removes nothing until admin runs adopt, which a running service refuses", async () => {
  await using program = await Place.make();
  const data = join(program.dir, "data");
  const adopt = async () => {
    const { code, stdout, stderr } = await program.run(["admin", "runs", "adopt", "--data", data]);
    return [code, stdout + stderr];
  };
  const first = await program.serve(["--data", data]);
  const put = await fetch(`${first.ready.url}/v1/robot/runs/lab-7/fold-1/files/a`, {
    method: "PUT",
    body: "one",
    headers: { authorization: `Bearer ${first.ready.api_key}` },
  });
  expect([put.status, await adopt()]).toEqual([201, [2, expect.stringContaining("another tendon serve")]]);
  expect(await first.stop()).toBe(0);
  await cp(join(data, "tendon.sqlite"), join(program.dir, "copy"));
  expect(await adopt()).toEqual([0, expect.stringContaining("nothing to adopt")]);
  await cp(join(program.dir, "copy"), join(data, "tendon.sqlite"));
  const restored = await program.serve(["--data", data]);
  expect(await restored.stop()).toBe(0);
  expect(await restored.child.stderr.text()).toContain("or to a newer one");
  expect(await adopt()).toEqual([
    0,
    expect.stringMatching(/^the stored bytes belonged to store_\w+ gen_\w+, and now belong/),
  ]);
  await rm(join(data, "blobs"), { recursive: true });
  const refused = await program.run(["serve", "--dev", "--data", data]);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("is a volume not mounted")]);
  expect(await adopt()).toEqual([0, expect.stringContaining("had no marker, and now belong")]);
  expect(await (await program.serve(["--data", data])).stop()).toBe(0);
}, 60_000);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("admin runs check compares record and bytes beside a service, and leaves what arrives alone", async () => {
      await using store = await place(name);
      await using program = await Place.make();
      const data = store.dir;
      const server = await program.serve(["--data", data], store.environment);
      const { url, api_key } = server.ready;
      const send = (path: string, method: string, body: string) =>
        fetch(`${url}/v1/robot/runs/lab-7/fold-1/${path}`, {
          method,
          body,
          headers: { authorization: `Bearer ${api_key}` },
        });
      expect((await send("files/a", "PUT", "one")).status).toBe(201);
      expect((await send("files/b", "PUT", "three")).status).toBe(201);
      const check = async (...more: string[]) => {
        const args = ["admin", "runs", "check", "--data", data, ...more];
        const { code, stdout, stderr } = await program.run(args, store.environment);
        expect(stderr).toBe("");
        return { code, stdout };
      };
      const json = async (...more: string[]) => {
        const { code, stdout } = await check("--json", ...more);
        return [code, JSON.parse(stdout)];
      };

      await writeFile(join(data, "staging/arriving"), "half a fi");
      const right = { ok: true, files: 2, bytes: 8, blobs: 2, young: 0, totals: [], wrong: [], unnamed: [] };
      expect(await json()).toEqual([0, { ...right, read: 0 }]);
      expect(await json("--deep")).toEqual([0, { ...right, read: 2 }]);
      expect(await readdir(join(data, "staging"))).toEqual(["arriving"]);
      expect((await check()).stdout).toMatch(
        /^record and bytes agree:\n {2}2 files of 8 bytes .* 2 blobs stored\n.*not read \(--deep does\)\n {2}0 blobs without a record are younger than 3 hours and left out/,
      );

      const blobOf = async (path: string) => {
        const [row] = await store.rows(`SELECT blob_id FROM run_files WHERE path = '${path}'`);
        const id = String(row?.blob_id);
        return { id, path: join(data, "blobs", id.slice(-2), id) };
      };
      const [a, b] = [await blobOf("a"), await blobOf("b")];
      await rm(a.path);
      await writeFile(b.path, "thrEe");
      const orphan = join(data, "blobs", a.id.slice(-2), `blob_orphan${a.id.slice(-2)}`);
      await writeFile(orphan, "nobody's");
      expect((await json())[1]).toMatchObject({ young: 1, unnamed: [] });
      const long = Date.now() / 1000 - LIMITS.runLeftSeconds - 60;
      await utimes(orphan, long, long);
      const { code, stdout } = await check("--deep");
      expect([code, stdout]).toEqual([1, expect.stringContaining("record and bytes do NOT agree")]);
      expect(stdout).toMatch(/lab-7\/fold-1 a of acct_\w+ \(blob_\w+\): its bytes are not there/);
      expect(stdout).toMatch(/lab-7\/fold-1 b of acct_\w+ \(blob_\w+\): its bytes have another SHA-256/);
      expect(stdout).toMatch(
        /blobs that no record names; the service removes a few by itself, and of many only says so: 1\n {4}blob_orphan\w\w, 8 bytes/,
      );
      expect(await json()).toMatchObject([1, { ok: false, wrong: [{ why: "missing", path: "a", blob: a.id }] }]);
      expect(await server.stop()).toBe(0);
    }, 60_000);
  });
}
