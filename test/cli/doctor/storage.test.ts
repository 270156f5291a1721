import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { runFoldersCheck, runStorageCheck } from "../../../src/cli/doctor/storage.ts";
import type { S3Options } from "../../../src/config/blobs.ts";
import { dir, server, withBlobs } from "../../runs/blob/bytes.ts";
import { S3 } from "../../runs/blob/s3-server.ts";

withBlobs();

const GiB = 2 ** 30;
const usable = { path: "/d/blobs", state: "usable", mode: 0o700, freeBytes: 50 * GiB, diskBytes: 100 * GiB } as const;

describe("a folder", () => {
  test("is green with the bytes that are free, also before it is made", () => {
    expect(runFoldersCheck([usable])).toEqual({
      name: "run storage",
      ok: true,
      found: "/d/blobs: 53687091200 bytes free (50.0 GiB)",
    });
    expect(runFoldersCheck([{ ...usable, state: "absent" }])).toMatchObject({ ok: true });
  });

  test("with less room than a run may need is told, with less than some files is red", () => {
    expect(runFoldersCheck([{ ...usable, freeBytes: 6 * GiB }])).toMatchObject({
      ok: true,
      todo: expect.stringContaining("less than one run"),
    });
    expect(runFoldersCheck([usable, { ...usable, freeBytes: 2 ** 20 }])).toMatchObject({
      ok: false,
      found: expect.stringContaining("1048576 bytes free"),
      todo: expect.stringMatching(/delete runs .* free that disk, or name a bucket in TENDON_BLOBS/),
    });
  });

  test("that cannot be written to is red, whichever of them it is", () => {
    const check = runFoldersCheck([usable, { ...usable, path: "/d/parts", state: "not writable" }]);
    expect(check).toMatchObject({
      ok: false,
      found: "/d/parts is not writable",
      todo: expect.stringContaining("chown"),
    });
  });

  test("is looked at without making anything", async () => {
    const dataDir = join(dir.path, "data");
    expect(await runStorageCheck({ blobs: undefined, dataDir })).toMatchObject({ ok: true });
    expect(existsSync(dataDir)).toBe(false);
  });

  test("and what arrives in it is left alone", async () => {
    const dataDir = join(dir.path, "used");
    await mkdir(join(dataDir, "staging"), { recursive: true });
    await Bun.write(join(dataDir, "staging/7"), "half a file");
    expect(await runStorageCheck({ blobs: undefined, dataDir })).toMatchObject({ ok: true });
    expect(await readdir(join(dataDir, "staging"))).toEqual(["7"]);
  });
});

const NOWHERE: S3Options = {
  kind: "s3",
  bucket: "runs",
  prefix: "lab",
  endpoint: "http://127.0.0.1:1",
  region: "us-east-1",
  pathStyle: true,
  credentials: { accessKeyId: "id", secretAccessKey: "a-secret-of-tests", sessionToken: undefined },
};

test("an object store that does not answer is red, with what to do and without its key", async () => {
  const check = await runStorageCheck({ blobs: NOWHERE, dataDir: dir.path });
  expect(check).toMatchObject({ name: "run storage", ok: false, todo: expect.stringContaining("TENDON_S3_ENDPOINT") });
  expect(check.found).toContain("http://127.0.0.1:1");
  expect(JSON.stringify(check)).not.toContain("a-secret-of-tests");
});

describe.skipIf(S3.absent)(S3.title, () => {
  test("is green with bucket and endpoint when it takes and gives what serve needs", async () => {
    const blobs = server.options({ prefix: "lab" });
    const check = await runStorageCheck({ blobs, dataDir: dir.path });
    const found = `s3://runs/lab at ${server.endpoint}, written to, read and listed`;
    expect(check).toEqual({ name: "run storage", ok: true, found });
  });

  test("is red without the bucket, and with a wrong secret", async () => {
    const absent = await runStorageCheck({ blobs: server.options({ bucket: "none" }), dataDir: dir.path });
    expect(absent).toMatchObject({ ok: false, todo: expect.stringContaining("TENDON_BLOBS") });
    const credentials = { accessKeyId: "tendon", secretAccessKey: "wrong", sessionToken: undefined };
    const refused = await runStorageCheck({ blobs: server.options({ credentials }), dataDir: dir.path });
    expect(refused).toMatchObject({ ok: false, todo: expect.stringContaining("AWS_SECRET_ACCESS_KEY") });
  });
});
