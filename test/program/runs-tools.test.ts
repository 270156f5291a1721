/**
 * Downloads of a run with tools that its reader has, stock, against the whole program: curl, wget, Python's `requests` and rclone
 * go on where a connection broke. From a folder, and from an S3 server, whose bytes come without a `Content-Length`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { BadLink } from "../client/bad-link.ts";
import { S3, S3Server } from "../runs/blob/s3-server.ts";
import { type Ended, Place } from "./program.ts";
import { type StoredRun, storeRun } from "./runs-stored.ts";

const MiB = 2 ** 20;
const PYTHON = "python3";

const text = (words: string) => new TextEncoder().encode(words);

/** All pieces differ, so that a misplaced one is found. */
function video(): Uint8Array<ArrayBuffer> {
  const pieces = Array.from({ length: 30 * 32 }, (_, index) => {
    const seed = createHash("sha512").update(String(index)).digest();
    return Buffer.alloc(MiB / 32, seed);
  });
  return new Uint8Array(Buffer.concat(pieces).subarray(0, 30 * MiB - 7));
}

const BIG = "videos/top.mp4";
const FILES: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
  [BIG]: video(),
  "episode.jsonl": text("{}\n"),
  "frames/top camera/ü #1?%&+.txt": text("x"),
  'notes/it\'s "here".txt': text("y"),
  "empty.bin": new Uint8Array(),
};
const WHOLE = FILES[BIG] ?? text("");
const CUT_AT_BYTE = 11 * MiB;

/** A test is skipped, and says why, where its tool is not installed. */
function needs(tool: string, found: boolean, how: string): { readonly title: string; readonly absent: boolean } {
  const absent = !found && testRequirement() === "none";
  return { absent, title: absent ? `${tool}, skipped: ${how}` : tool };
}

const hasRequests =
  Bun.which(PYTHON) !== null &&
  Bun.spawnSync([PYTHON, "-c", "import requests"], { stdout: "ignore", stderr: "ignore" }).exitCode === 0;

const CURL = needs("curl", Bun.which("curl") !== null, "apt-get install curl");
const WGET = needs("wget", Bun.which("wget") !== null, "apt-get install wget");
const RCLONE = needs("rclone", Bun.which("rclone") !== null, "apt-get install rclone");
const REQUESTS = needs(
  "requests",
  hasRequests,
  "python3 has no requests; in a virtual environment whose bin is first in PATH, pip install requests",
);

const STORES = [
  { store: "a folder", absent: false, chunked: false },
  { store: S3.title, absent: S3.absent, chunked: true },
] as const;

describe.each(STORES)("a download from $store", ({ absent, chunked }) => {
  let s3: S3Server | undefined;
  let place: Place;
  let run: StoredRun;
  let link: BadLink;

  beforeAll(async () => {
    if (absent) return;
    place = await Place.make();
    if (chunked) s3 = await S3Server.start();
    const server = await place.serve([], s3 ? variables(s3) : {});
    run = await storeRun(server, "yam-1/run.2026-11-22", FILES);
    link = await BadLink.to(server.ready.url);
  }, 60_000);

  afterAll(async () => {
    if (absent) return;
    await link[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
    await s3?.[Symbol.asyncDispose]();
  });

  /** The address by way of the link. */
  const linked = (path: string) => run.file(path).replace(/^http:\/\/[^/]+/, link.url);

  const key = () => run.authorization.replace("Bearer ", "");

  async function tool(command: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    const child = Bun.spawn([...command], {
      cwd: place.dir,
      env: { PATH: process.env.PATH ?? "", HOME: place.home, LC_ALL: "C.UTF-8", ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, stdout, stderr };
  }

  const curl = (...args: readonly string[]) =>
    tool(["curl", "-sS", "-H", `Authorization: ${run.authorization}`, ...args]);
  const wget = (...args: readonly string[]) =>
    tool(["wget", "-nv", "--tries=1", `--header=Authorization: ${run.authorization}`, ...args]);

  const sizeOf = async (name: string) => (await stat(place.path(name))).size;
  const same = async (name: string, bytes: Uint8Array = WHOLE) =>
    Buffer.compare(await Bun.file(place.path(name)).bytes(), bytes) === 0;

  /** Values of `Range` in the requests that the link has seen; undefined: one had none. */
  const rangesAsked = () => {
    const found = link.heads.map((head) => /^range: (.*)$/im.exec(head)?.[1]?.trim());
    link.heads.length = 0;
    return found;
  };

  const cutOnce = () => {
    link.heads.length = 0;
    link.next("GET", { kind: "cut down", atByte: CUT_AT_BYTE });
  };

  /** A part of the file has come, and it is its beginning. */
  async function expectPart(name: string): Promise<number> {
    const size = await sizeOf(name);
    expect(size).toBeGreaterThan(CUT_AT_BYTE / 2);
    expect(size).toBeLessThanOrEqual(CUT_AT_BYTE);
    expect(await same(name, WHOLE.subarray(0, size))).toBe(true);
    return size;
  }

  test.skipIf(absent || CURL.absent)(
    `${CURL.title} -C - goes on where it broke off, and knows when all is there`,
    async () => {
      cutOnce();
      // 18: a part of the file.
      expect(await curl("-o", "by-curl", linked(BIG))).toMatchObject({ code: 18 });
      const size = await expectPart("by-curl");
      expect(await curl("-C", "-", "-o", "by-curl", linked(BIG))).toMatchObject({ code: 0, stderr: "" });
      expect(rangesAsked()).toEqual([undefined, `bytes=${size}-`]);
      expect(await same("by-curl")).toBe(true);
      expect(await curl("-C", "-", "-o", "by-curl", linked(BIG))).toMatchObject({ code: 0, stderr: "" });
      expect(await same("by-curl")).toBe(true);
    },
  );

  test.skipIf(absent || CURL.absent)(`${CURL.title} --retry with -C - needs nobody to start it again`, async () => {
    cutOnce();
    const retry = ["--retry", "3", "--retry-all-errors", "--retry-delay", "1"];
    expect(await curl(...retry, "-C", "-", "-o", "by-retry", linked(BIG))).toMatchObject({ code: 0 });
    expect(await same("by-retry")).toBe(true);
  });

  test.skipIf(absent || CURL.absent)(
    `${CURL.title} with the ETag of another file gets it whole, and never a mixture`,
    async () => {
      const other = ["-H", `If-Range: "sha256-${"0".repeat(64)}"`];
      const said = await curl("-w", "%{http_code}", "-r", "1000-", ...other, "-o", "whole", run.file(BIG));
      expect([said, await same("whole")]).toMatchObject([{ code: 0, stdout: "200" }, true]);
      await Bun.write(place.path("begun"), WHOLE.subarray(0, 1000));
      // 33: the answer is not the rest that was asked for.
      expect(await curl("-C", "-", ...other, "-o", "begun", run.file(BIG))).toMatchObject({ code: 33 });
      expect(await sizeOf("begun")).toBe(1000);
      const etag = `If-Range: "sha256-${new Bun.SHA256().update(WHOLE).digest("hex")}"`;
      expect(await curl("-C", "-", "-H", etag, "-o", "begun", run.file(BIG))).toMatchObject({ code: 0 });
      expect(await same("begun")).toBe(true);
    },
  );

  test.skipIf(absent || CURL.absent)(
    `${CURL.title} -I is told the size, and a download has ${chunked ? "none" : "it too"}`,
    async () => {
      const length = `content-length: ${WHOLE.length}\r\n`;
      expect((await curl("-I", run.file(BIG))).stdout.toLowerCase()).toContain(length);
      const { stdout } = await curl("-D", "-", "-o", "by-get", run.file(BIG));
      expect(stdout.toLowerCase().includes(length)).toBe(!chunked);
      expect(await same("by-get")).toBe(true);
    },
  );

  test.skipIf(absent || WGET.absent)(
    `${WGET.title} -c goes on where it broke off, and knows when all is there`,
    async () => {
      cutOnce();
      // 4: the network failed. Of a body in chunks wget 1.21 does not see that its end is missing: only the size or the digest tells.
      const { code } = await wget("-O", "by-wget", linked(BIG));
      if (!chunked) expect(code).toBe(4);
      const size = await expectPart("by-wget");
      expect(await wget("-c", "-O", "by-wget", linked(BIG))).toMatchObject({ code: 0 });
      expect(rangesAsked()).toEqual([undefined, `bytes=${size}-`]);
      expect(await same("by-wget")).toBe(true);
      expect(await wget("-c", "-O", "by-wget", linked(BIG))).toMatchObject({ code: 0 });
      expect(await same("by-wget")).toBe(true);
    },
  );

  test.skipIf(absent || REQUESTS.absent)(`${REQUESTS.title} goes on where it broke off, twice`, async () => {
    cutOnce();
    link.next("GET", { kind: "cut down", atByte: CUT_AT_BYTE });
    const script = join(import.meta.dir, "resume.py");
    const ended = await tool([PYTHON, script, linked(BIG), "by-requests"], { TENDON_API_KEY: key() });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const sizes = [...ended.stdout.matchAll(/ after (\d+) bytes/g)].map(([, size]) => Number(size));
    expect(sizes).toHaveLength(2);
    expect(rangesAsked()).toEqual([undefined, `bytes=${sizes[0]}-`, `bytes=${sizes[1]}-`]);
    expect(await same("by-requests")).toBe(true);
  });

  test.skipIf(absent || RCLONE.absent)(
    `${RCLONE.title} copies a run by HTTP, over a cut, and again without a transfer`,
    async () => {
      const manifest = await fetch(run.url, { headers: { authorization: run.authorization } });
      const { files } = (await manifest.json()) as { files: { path: string }[] };
      await Bun.write(place.path("files.txt"), files.map(({ path }) => `${path}\n`).join(""));
      await rm(place.path("copied"), { recursive: true, force: true });
      await mkdir(place.path("copied"));
      const from = ["--http-url", `${run.url.replace(/^http:\/\/[^/]+/, link.url)}/files/`];
      const which = ["--files-from-raw", "files.txt", "--no-traverse"];
      const copy = () =>
        tool(["rclone", "copy", ":http:", "copied", ...from, ...which], {
          RCLONE_HTTP_HEADERS: `Authorization,${run.authorization}`,
          RCLONE_CONFIG: "/dev/null",
        });
      link.heads.length = 0;
      link.next(`GET ${new URL(run.file(BIG)).pathname}`, { kind: "cut down", atByte: CUT_AT_BYTE });
      expect(await copy()).toMatchObject({ code: 0 });
      for (const [path, bytes] of Object.entries(FILES)) {
        expect([path, await same(`copied/${path}`, bytes)]).toEqual([path, true]);
      }
      expect(link.take("GET").length).toBeGreaterThan(files.length);
      expect(await copy()).toMatchObject({ code: 0 });
      expect(link.take("GET")).toEqual([]);
    },
  );
});

function variables(server: S3Server): Record<string, string> {
  const { bucket, prefix, endpoint = "", credentials } = server.options();
  return {
    TENDON_BLOBS: `s3://${bucket}/${prefix}`,
    TENDON_S3_ENDPOINT: endpoint,
    AWS_ACCESS_KEY_ID: credentials?.accessKeyId ?? "",
    AWS_SECRET_ACCESS_KEY: credentials?.secretAccessKey ?? "",
  };
}
