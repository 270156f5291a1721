/** The files of a run on the wire, against the whole program: `HEAD`, ranges and conditions, and addresses that no client would send. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Place, type Server } from "./program.ts";
import { type RawAnswer, RawHttp } from "./raw-http.ts";
import { type StoredRun, storeRun } from "./runs-stored.ts";

const BYTES = new TextEncoder().encode("0123456789".repeat(1_000));
const ODD = `frames/ü "quoted" it's #1?%&+;😀.txt`;

let place: Place;
let server: Server;
let run: StoredRun;
let key: string;
/** Path of the run's files. */
let files: string;

beforeAll(async () => {
  place = await Place.make();
  server = await place.serve();
  run = await storeRun(server, "yam-1/run.1", {
    "a/b.txt": BYTES,
    "c.bin": BYTES,
    empty: new Uint8Array(),
    [ODD]: BYTES,
  });
  key = `Authorization: ${run.authorization}`;
  files = `${new URL(run.url).pathname}/files`;
}, 60_000);

afterAll(async () => {
  await place[Symbol.asyncDispose]();
});

/** Sends a request on a new connection. */
async function ask(method: string, target: string, headers: readonly string[] = [], body = ""): Promise<RawAnswer> {
  using connection = await RawHttp.to(server.ready.url);
  return await connection.ask(method, target, [key, ...headers], body);
}

async function codeOf(target: string, method = "GET", body = ""): Promise<string> {
  const answer = await ask(method, target, [], body);
  return answer.status < 300
    ? String(answer.status)
    : `${answer.status} ${JSON.parse(answer.body.toString()).error.code}`;
}

test("a host may have a short name", async () => {
  for (const host of ["h", "gpu", "gpu:80"]) {
    using connection = await RawHttp.to(server.ready.url, host);
    expect((await connection.ask("GET", `${files}/a/b.txt`, [key])).status).toBe(200);
    expect((await connection.ask("GET", "/healthz")).status).toBe(200);
  }
});

describe("HEAD", () => {
  /** Those that are the request's own, and Bun gives no `Date` to the answer of a handler to HEAD. */
  const lasting = ({ status, headers }: RawAnswer) => {
    const { date, "x-request-id": id, ...rest } = headers;
    expect(id).toStartWith("req_");
    return { status, headers: rest };
  };

  test.each([
    ["a file", "a/b.txt", true, 200],
    ["an empty file", "empty", true, 200],
    ["a path without a file", "nope", true, 404],
    ["a path that is none", "a%00b", true, 422],
    ["a file, without a key", "a/b.txt", false, 401],
    ["a path without a file, without a key", "nope", false, 401],
  ])("answers for %s with the status and the headers of GET", async (_, path, keyed, status) => {
    using connection = await RawHttp.to(server.ready.url);
    const headers = keyed ? [key] : [];
    const head = await connection.ask("HEAD", `${files}/${path}`, headers);
    const get = await connection.ask("GET", `${files}/${path}`, headers);
    expect(head.status).toBe(status);
    expect(head.headers["content-length"]).toBe(String(get.body.length));
    expect(lasting(head)).toEqual(lasting(get));
  });

  test("of a file of an unfinished run, and of no run, is 404", async () => {
    expect(await codeOf("/v1/robot/runs/yam-1/begun/files/x", "PUT", "x")).toBe("201");
    for (const path of ["yam-1/begun/files/x", "yam-1/never/files/x"]) {
      expect((await ask("HEAD", `/v1/robot/runs/${path}`)).status).toBe(404);
    }
  });

  test("sends no body, ignores Range, heeds If-None-Match, and its connection goes on", async () => {
    using connection = await RawHttp.to(server.ready.url);
    const target = `${files}/a/b.txt`;
    const { headers } = await connection.ask("HEAD", target, [key]);
    for (const range of ["bytes=0-0", "bytes=99999-", "bytes=0-0,2-3", "garbage"]) {
      const answer = await connection.ask("HEAD", target, [key, `Range: ${range}`]);
      expect([answer.status, answer.headers["content-length"], answer.headers["content-range"]]).toEqual([
        200,
        String(BYTES.length),
        undefined,
      ]);
    }
    expect((await connection.ask("HEAD", target, [key, `If-None-Match: ${headers.etag}`])).status).toBe(304);
    expect((await connection.ask("HEAD", `${files}/nope`, [key])).status).toBe(404);
    expect((await connection.ask("HEAD", target)).status).toBe(401);
    expect((await connection.ask("GET", target, [key])).body).toEqual(Buffer.from(BYTES));
  });

  test("and a GET that were sent at once are answered in their order", async () => {
    using connection = await RawHttp.to(server.ready.url);
    connection.write("HEAD", `${files}/a/b.txt`, [key]);
    connection.write("GET", `${files}/c.bin`, [key, "Range: bytes=5-9"]);
    connection.write("HEAD", `${files}/nope`, [key]);
    expect((await connection.read("HEAD")).headers["content-length"]).toBe(String(BYTES.length));
    const part = await connection.read("GET");
    expect([part.status, part.body.toString()]).toEqual([206, "56789"]);
    expect((await connection.read("HEAD")).status).toBe(404);
  });
});

describe("Range", () => {
  const size = BYTES.length;
  const many = (count: number) => `bytes=${Array.from({ length: count }, (_, index) => `${index}-${index}`).join(",")}`;

  test.each([
    ["one range", "bytes=10-19", 206, 10, `bytes 10-19/${size}`],
    ["a number of 400 digits at the end", `bytes=9990-${"9".repeat(400)}`, 206, 10, `bytes 9990-9999/${size}`],
    ["a suffix of 400 digits", `bytes=-${"9".repeat(400)}`, 206, size, `bytes 0-9999/${size}`],
    ["several ranges", "bytes=0-1,5-6", 200, size, undefined],
    ["a Range of 8 KiB", many(1_600), 200, size, undefined],
    ["garbage", "\xff\xfe=0-1;;", 200, size, undefined],
    ["another unit", "items=0-1", 200, size, undefined],
  ])("%s", async (_, range, status, length, contentRange) => {
    const answer = await ask("GET", `${files}/a/b.txt`, [`Range: ${range}`]);
    expect([answer.status, answer.headers["content-range"]]).toEqual([status, contentRange]);
    expect(answer.body.length).toBe(length);
    if (status === 206) expect(answer.headers["content-length"]).toBe(String(length));
  });

  test("that is not satisfiable is 416 and says the size", async () => {
    for (const range of [`bytes=${size}-`, `bytes=${"9".repeat(400)}-`, "bytes=-0"]) {
      const answer = await ask("GET", `${files}/a/b.txt`, [`Range: ${range}`]);
      expect([answer.status, answer.headers["content-range"]]).toEqual([416, `bytes */${size}`]);
      expect(JSON.parse(answer.body.toString()).error.code).toBe("invalid_range");
    }
  });

  test("of an empty file: its last bytes are all of it, its first ones are not there", async () => {
    expect((await ask("GET", `${files}/empty`, ["Range: bytes=-5"])).status).toBe(200);
    const first = await ask("GET", `${files}/empty`, ["Range: bytes=0-"]);
    expect([first.status, first.headers["content-range"]]).toEqual([416, "bytes */0"]);
  });

  test("is read by nobody but this service: Bun's own reading of it, for answers that are files, differs", async () => {
    const { headers } = await ask("HEAD", `${files}/a/b.txt`);
    const differing = [
      ["Range: bytes=0 - 1"],
      ["Range: bytes =0-1"],
      ["Range: bytes=- 5"],
      ["Range: bytes=99999-5"],
      ["Range: bytes=0-0", "Range: bytes=1-1"],
      ["Range: bytes=0-0", `If-Range: ${headers["last-modified"]}`],
    ];
    for (const lines of differing) {
      const { status, body } = await ask("GET", `${files}/a/b.txt`, lines);
      expect([lines, status, body.length]).toEqual([lines, 200, size]);
    }
  });

  test("of ten thousand ranges is more than a header may be, and harms nobody", async () => {
    expect((await ask("GET", `${files}/a/b.txt`, [`Range: ${many(10_000)}`])).status).toBe(431);
    expect((await ask("GET", `${files}/a/b.txt`)).status).toBe(200);
  });

  test("means nothing to an upload", async () => {
    const stored = await ask("PUT", "/v1/robot/runs/yam-1/ranged/files/x", ["Range: bytes=0-1"], "hello");
    expect([stored.status, JSON.parse(stored.body.toString()).size]).toEqual([201, 5]);
  });

  test("an upload with Content-Range is a part of a file, which must not become the whole (RFC 9110, section 14.5)", async () => {
    const target = "/v1/robot/runs/yam-1/partial/files/x";
    const refused = await ask("PUT", target, ["Content-Range: bytes 5-9/10"], "hello");
    expect([refused.status, JSON.parse(refused.body.toString()).error.code]).toEqual([422, "invalid_request"]);
  });
});

describe("conditions", () => {
  const first = ["Range: bytes=0-0"];

  test("a fresh file is 304 without a body, whatever Range says, and keeps ETag, Last-Modified and Cache-Control", async () => {
    const { headers } = await ask("HEAD", `${files}/a/b.txt`);
    const { etag, "last-modified": modified, "cache-control": cache } = headers;
    for (const condition of [`If-None-Match: W/${etag}`, "If-None-Match: *", `If-Modified-Since: ${modified}`]) {
      const answer = await ask("GET", `${files}/a/b.txt`, [condition, ...first]);
      expect([answer.status, answer.body.length]).toEqual([304, 0]);
      expect(answer.headers).toMatchObject({ etag, "last-modified": modified, "cache-control": cache });
    }
  });

  test("If-Range with this ETag gives the part, with another, another date or garbage the whole", async () => {
    const { headers } = await ask("HEAD", `${files}/a/b.txt`);
    const statusOf = async (value: string) => {
      return (await ask("GET", `${files}/a/b.txt`, [`If-Range: ${value}`, ...first])).status;
    };
    expect(await statusOf(headers.etag ?? "")).toBe(206);
    const dates = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 2094 08:49:37 GMT"];
    for (const other of ['"other"', `W/${headers.etag}`, ...dates, "garbage", "\xff", ","]) {
      expect([other, await statusOf(other)]).toEqual([other, 200]);
    }
    const beyond = ["Range: bytes=99999-", 'If-Range: "other"'];
    expect((await ask("GET", `${files}/a/b.txt`, beyond)).status).toBe(200);
  });

  test("garbage in all of them at once is the whole file", async () => {
    const garbage = '"""W/,;\xff%00\\"';
    const names = ["If-None-Match", "If-Modified-Since", "If-Range", "Range"];
    const answer = await ask(
      "GET",
      `${files}/a/b.txt`,
      names.map((name) => `${name}: ${garbage}`),
    );
    expect([answer.status, answer.body.length]).toEqual([200, BYTES.length]);
    const long = names.map((name) => `${name}: ${'",W/'.repeat(800)}`);
    expect((await ask("GET", `${files}/a/b.txt`, long)).status).toBe(200);
  });
});

describe("addresses", () => {
  const INVALID = "422 invalid_request";
  const NO_FILE = "404 file_not_found";

  test.each([
    ["a NUL", "a%00b", INVALID],
    ["an encoded slash", "a%2Fb.txt", INVALID],
    ["an encoded slash, lower-case", "a%2fb.txt", INVALID],
    ["an encoded backslash", "a%5Cb.txt", INVALID],
    ["a backslash is a slash before the route is found", "a\\b.txt", "200"],
    ["no UTF-8", "%C3%28", INVALID],
    ["half a character", "%E2%82", INVALID],
    ["half a surrogate pair", "%ED%A0%80", INVALID],
    ["an overlong dot", "%C0%AE%C0%AE", INVALID],
    ["a percent sign alone", "%", INVALID],
    ["no hexadecimal", "%zz", INVALID],
    ["a newline", "a%0Ab", INVALID],
    ["a carriage return", "a%0D%0AX-Injected:1", INVALID],
    ["DEL", "%7F", INVALID],
    ["a control character of Latin 1", "%C2%85", INVALID],
    ["an empty segment", "a//b.txt", INVALID],
    ["an empty segment at the beginning", "/a/b.txt", INVALID],
    ["a slash at the end", "a/b.txt/", INVALID],
    ["nothing", "", INVALID],
    ["a dot segment that leads back", "x/../a/b.txt", "200"],
    ["a dot segment that stays", "a/./b.txt", "200"],
    ["encoded dots are dots", "x/%2e%2E/a/b.txt", "200"],
    ["dots that lead to another name of the path", "../../run.1/files/a/b.txt", "200"],
    ["dots behind an encoded slash", "a/..%2Fb.txt", INVALID],
    ["dots that are encoded twice", "%252e%252e/b.txt", NO_FILE],
    ["letters that are encoded", "%61/%62%2Etxt", "200"],
    ["a query is no part of it", "a/b.txt?x=../y", "200"],
    ["a name of JavaScript", "__proto__", NO_FILE],
    ["another name of JavaScript", "constructor", NO_FILE],
    ["a pattern of the router", ":robot", NO_FILE],
    ["another pattern of the router", "*", NO_FILE],
    ["512 bytes", "x".repeat(512), NO_FILE],
    ["513 bytes", "x".repeat(513), INVALID],
    ["512 bytes of UTF-8", "%C3%BC".repeat(256), NO_FILE],
    ["514 bytes of UTF-8", "%C3%BC".repeat(257), INVALID],
    ["16 segments", `${"a/".repeat(15)}b`, NO_FILE],
    ["17 segments", `${"a/".repeat(16)}b`, INVALID],
  ])("a file's path: %s", async (_, path, outcome) => {
    expect(await codeOf(`${files}/${path}`)).toBe(outcome);
    const head = await ask("HEAD", `${files}/${path}`);
    expect(head.status).toBe(Number(outcome.slice(0, 3)));
    // What cannot be read cannot be written, and a sealed run takes nothing.
    const written = await codeOf(`${files}/${path}`, "PUT", "x");
    expect(written).toBe(outcome === INVALID ? INVALID : "409 run_completed");
  });

  test("dots, encoded or not, never lead out of the run", async () => {
    for (const path of [
      "..",
      "%2e%2e",
      "%2E%2E/%2e%2e/x",
      ".%2e/files",
      "../../../../nowhere",
      "a/%2e%2e/%2e%2e/%2e%2e/never",
    ]) {
      for (const method of ["GET", "DELETE"]) {
        expect(await codeOf(`${files}/${path}`, method)).toMatch(
          /^(404 (not|run_not|file_not)_found|422 invalid_request)$/,
        );
      }
    }
    expect(await codeOf(new URL(run.url).pathname)).toBe("200");
  });

  test.each([
    ["an encoded slash in the robot's name", "a%2Fb/c", INVALID],
    ["a NUL in the run's name", "a/b%00", INVALID],
    ["a name with a blank", "a/b%20c", INVALID],
    ["a name in another script", "a/%C3%BC", INVALID],
    ["a name that begins with a dot", "a/.b", INVALID],
    ["a name of 129 characters", `a/${"b".repeat(129)}`, INVALID],
    ["a name of 128 characters", `a/${"b".repeat(128)}`, "404 run_not_found"],
    ["letters that are encoded", "%79am-1/run%2E1", "200"],
    ["a slash at the end", "yam-1/run.1/", "404 not_found"],
    ["an empty robot's name", "/run.1", "404 not_found"],
    ["two slashes before the files", "yam-1/run.1//files/a/b.txt", "404 not_found"],
  ])("a run's address: %s", async (_, address, outcome) => {
    expect(await codeOf(`/v1/robot/runs/${address}`)).toBe(outcome);
  });

  test("a name with quotes, UTF-8 and percent signs stays within Content-Disposition and comes back as it was", async () => {
    const { pathname } = new URL(run.file(ODD));
    const { headers, body } = await ask("GET", pathname);
    expect(body).toEqual(Buffer.from(BYTES));
    const value = headers["content-disposition"] ?? "";
    const [, plain, encoded = ""] =
      /^attachment; filename="([^"\\]*)"; filename\*=UTF-8''([^"' ();]+)$/.exec(value) ?? [];
    expect(plain).toBe("_ _quoted_ it's #1?%&+;__.txt");
    expect(decodeURIComponent(encoded)).toBe(ODD.slice("frames/".length));
    const manifest = await ask("GET", new URL(run.url).pathname);
    expect(JSON.parse(manifest.body.toString()).files.map(({ path }: { path: string }) => path)).toContain(ODD);
  });
});
