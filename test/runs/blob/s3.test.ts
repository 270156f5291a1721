/** What is particular to S3: what an operator is told, bad links, and the form of requests. backend.test.ts has what holds for all. */
import { describe, expect, test } from "bun:test";
import { s3Backend } from "../../../src/runs/blob/s3.ts";
import { BadLink } from "../../client/bad-link.ts";
import { freePort } from "../../store/temporary.ts";
import { begun, blobId, bytesOf, random, reason, sent, server, sha256, staged, stored, withBlobs } from "./bytes.ts";
import { S3, type S3Server } from "./s3-server.ts";

const MiB = 2 ** 20;

withBlobs();

describe.skipIf(S3.absent)("S3: what an operator is told", () => {
  const told = (changes: Parameters<S3Server["options"]>[0]) =>
    reason(s3Backend(server.options(changes), { silentMs: 300 }).check());
  const credentials = { accessKeyId: "tendon", secretAccessKey: "a-wrong-secret", sessionToken: undefined };

  test.each([
    ["a missing bucket", { bucket: "nowhere" }, 'has no bucket "nowhere"; create it, or name another in TENDON_BLOBS'],
    ["an unknown key", { credentials: { ...credentials, accessKeyId: "nobody" } }, "nobody; correct AWS_ACCESS_KEY_ID"],
    ["a wrong secret", { credentials }, "; correct AWS_SECRET_ACCESS_KEY"],
    ["another region", { region: "eu-central-1" }, "the region us-east-1, not eu-central-1; set TENDON_S3_REGION"],
  ])("of %s: what is wrong, and what to set", async (_, changes, words) => {
    const text = await told(changes);
    expect(text).toContain(words);
    expect(text).not.toContain(credentials.secretAccessKey);
  });

  test("of a port where nothing listens: to check the endpoint", async () => {
    expect(await told({ endpoint: `http://127.0.0.1:${await freePort()}` })).toMatch(
      / does not answer \(.*ECONNREFUSED.*\); check .*TENDON_S3_ENDPOINT$/,
    );
  });

  test("of a server that takes connections and answers nothing: the same, after one span of silence", async () => {
    let connections = 0;
    using silent = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: () => {
          connections += 1;
        },
        data: () => {},
      },
    });
    expect(await told({ endpoint: `http://127.0.0.1:${silent.port}` })).toMatch(
      /no sign of life for 0\.3 s\); check .*TENDON_S3_ENDPOINT$/,
    );
    expect(connections).toBe(1);
  });

  test("of a web server that is no S3 store: to check the endpoint", async () => {
    using web = Bun.serve({ port: 0, fetch: () => new Response("<p>Hello", { status: 404 }) });
    expect(await told({ endpoint: web.url.origin })).toContain("cannot be used");
  });
});

describe.skipIf(S3.absent)("S3: the marker", () => {
  const SIX = Array.from({ length: 6 }, (_, index) => `store_${index} gen_1`);

  test("of databases that claim a new store at once one has it, and of those that replace its marker one does", async () => {
    const options = server.options();
    const marked = (from: string) => Promise.all(SIX.map((to) => s3Backend(options).mark(from, to)));
    for (const from of ["", "store_before gen_0"]) {
      if (from !== "") await s3Backend(options).mark(await s3Backend(options).marker(), from);
      const outcome = await marked(from);
      expect(outcome.filter((one) => one).length).toBe(1);
      expect(await s3Backend(options).marker()).toBe(SIX[outcome.indexOf(true)] ?? "");
    }
  });

  test("a store that has no conditions keeps the marker of the last writer", async () => {
    const options = server.options();
    using plain = Bun.serve({
      port: 0,
      fetch: async (request) => {
        const { method, headers } = request;
        if (headers.has("if-none-match") || headers.has("if-match")) {
          return new Response("<Error><Code>NotImplemented</Code></Error>", { status: 501 });
        }
        if (method === "PUT") kept = await request.text();
        return kept === undefined
          ? new Response("<Error><Code>NoSuchKey</Code></Error>", { status: 404 })
          : new Response(method === "GET" ? kept : "", { headers: { etag: '"1"' } });
      },
    });
    let kept: string | undefined;
    const backend = s3Backend({ ...options, endpoint: plain.url.origin });
    expect([await backend.mark("", "store_1 gen_1"), await backend.marker()]).toEqual([true, "store_1 gen_1"]);
    expect(await backend.mark("store_1 gen_1", "store_1 gen_2")).toBe(true);
  });
});

describe.skipIf(S3.absent)("S3: a bad link", () => {
  /** An empty store, directly and over a link that fails as a test says. */
  async function linked() {
    const options = server.options();
    const link = await BadLink.to(server.endpoint);
    const direct = s3Backend(options);
    const backend = s3Backend({ ...options, endpoint: link.url });
    return { link, direct, backend, [Symbol.asyncDispose]: () => link[Symbol.asyncDispose]() };
  }

  const flip = { kind: "flip up", atByte: 20_000 } as const;

  test("a bit that changes on the way is refused, and nothing is stored", async () => {
    await using given = await linked();
    const { link, direct, backend } = given;
    // Each of the two bodies is sent three times.
    for (let request = 0; request < 6; request += 1) link.next("PUT", flip);
    const blob = blobId();
    expect(await reason(backend.put(await staged(random(100_000)), blob))).toMatch(/Mismatch|BadDigest/);
    expect(await bytesOf(direct, blob, 0, 1)).toBeUndefined();
    const to = await begun(direct);
    expect(await reason(sent(backend, to, 1, random(100_000)))).toMatch(/Mismatch|BadDigest/);
    expect(await direct.join(to, [{ part: 1, tag: "none", size: 100_000 }])).toEqual({ changed: [1] });
    expect(link.take("PUT").length).toBe(6);
  });

  test("a bit that changes once is put right by sending the bytes again", async () => {
    await using given = await linked();
    const { link, direct, backend } = given;
    link.next("PUT", flip);
    const bytes = random(100_000);
    const blob = await stored(backend, bytes);
    expect(link.take("PUT").length).toBe(2);
    expect(await bytesOf(direct, blob, 0, bytes.length)).toEqual(bytes);
  });

  test("a download that is cut goes on where it stopped", async () => {
    await using given = await linked();
    const { link, direct, backend } = given;
    const bytes = random(5 * MiB);
    const blob = await stored(direct, bytes);
    for (let request = 0; request < 2; request += 1) link.next("GET", { kind: "cut down", atByte: 2 * MiB });
    expect(await bytesOf(backend, blob, 100, bytes.length)).toEqual(bytes.slice(100));
    expect(link.take("GET").length).toBe(3);
  });

  test("a server that was started anew is used as before", async () => {
    const backend = s3Backend(server.options());
    const blob = await stored(backend, random(1000));
    await server.down();
    await server.up();
    // The client still has its connection to the old one.
    expect(await bytesOf(backend, blob, 0, 1000)).toHaveLength(1000);
    await stored(backend, random(1000));
  });

  test("a join whose answer is lost succeeds", async () => {
    await using given = await linked();
    const { link, direct, backend } = given;
    const bytes = random(1000);
    const to = await begun(direct);
    const parts = [await sent(direct, to, 1, bytes)];
    link.next("POST", { kind: "cut down", atByte: 0 });
    expect(await backend.join(to, parts)).toEqual({ size: 1000, sha256: sha256(bytes) });
    expect(link.take("POST").length).toBe(2);
  });
});

describe("S3: a request", () => {
  const options = {
    kind: "s3",
    bucket: "runs",
    prefix: "",
    region: "us-east-1",
    pathStyle: true,
    credentials: { accessKeyId: "a", secretAccessKey: "b", sessionToken: "c" },
  } as const;

  test("with a body has its length, its SHA-256 in the signature and as a checksum", async () => {
    const bytes = random(200_000);
    let seen: Record<string, string> = {};
    using web = Bun.serve({
      port: 0,
      fetch: async (request) => {
        seen = Object.fromEntries(request.headers);
        expect(new Uint8Array(await request.arrayBuffer())).toEqual(bytes);
        return new Response(null, { headers: { ETag: '"1"' } });
      },
    });
    await s3Backend({ ...options, endpoint: web.url.origin }).put(await staged(bytes), "blob_1");
    expect(seen).toMatchObject({
      "content-length": "200000",
      "x-amz-content-sha256": Buffer.from(sha256(bytes)).toString("hex"),
      "x-amz-checksum-sha256": Buffer.from(sha256(bytes)).toString("base64"),
      "x-amz-security-token": "c",
    });
    expect(seen["transfer-encoding"]).toBeUndefined();
    expect(seen.authorization).toMatch(/SignedHeaders=[^,]*x-amz-content-sha256/);
  });

  const statuses = [
    [503, "SlowDown", 3],
    [500, "InternalError", 3],
    [403, "AccessDenied", 1],
    [507, "XMinioStorageFull", 1],
  ] as const;
  test.each(statuses)("answered with %d %s is sent as often as that may help", async (status, code, times) => {
    let requests = 0;
    using web = Bun.serve({
      port: 0,
      fetch: () => {
        requests += 1;
        return new Response(`<Error><Code>${code}</Code><Message>No.</Message></Error>`, { status });
      },
    });
    const backend = s3Backend({ ...options, endpoint: web.url.origin });
    const error = await backend.put(await staged(random(10)), "blob_1").catch((failed: unknown) => failed);
    expect(error).toMatchObject({
      message: `S3 PutObject: ${code} (${status}): No.`,
      code: status === 507 ? "ENOSPC" : undefined,
    });
    expect(requests).toBe(times);
  });

  test("is ended when the store is silent in the middle of a body", async () => {
    using web = Bun.serve({
      port: 0,
      fetch: () =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(random(1000)),
          }),
          { status: 206, headers: { "Content-Range": "bytes 0-1999/2000" } },
        ),
    });
    const backend = s3Backend({ ...options, endpoint: web.url.origin }, { silentMs: 200 });
    expect(await reason(bytesOf(backend, "blob_1", 0, 2000))).toBe("S3 GetObject: no sign of life for 0.2 s");
  });
});
