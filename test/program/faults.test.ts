/** What goes wrong for users of the program: each a clear message and the right end, never a stack, never a hang. */
import { describe, expect, test } from "bun:test";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { buildInto } from "../bundle/built.ts";
import { chunkOf, EXECUTABLE, isClear, Place, requestOf } from "./program.ts";

const PARITY = join(import.meta.dir, "../../models/molmoact2-yam/parity");

async function frames(): Promise<Uint8Array[]> {
  return await Promise.all(["top.jpg", "left.jpg", "right.jpg"].map((name) => Bun.file(join(PARITY, name)).bytes()));
}

/** `serve` with these flags ends by itself with `code` and one clear message that holds `words`. */
async function expectRefusal(place: Place, args: readonly string[], code: number, ...words: string[]): Promise<void> {
  const ended = await place.run(["serve", "--dev", "--port", "0", ...args]);
  expect({ args, code: ended.code, clear: isClear(ended.stderr), text: ended.stderr }).toMatchObject({
    code,
    clear: true,
  });
  for (const word of words) expect(ended.stderr).toContain(word);
}

describe("serve refuses to start", () => {
  test("a wrong flag, a wrong command, a wrong number: exit 2", async () => {
    await using place = await Place.make();
    await expectRefusal(place, ["--prot", "1"], 2, "--prot", "--help");
    await expectRefusal(place, ["--port", "99999"], 2, "port");
    const command = await place.run(["sevre"]);
    expect([command.code, command.stderr.includes("serve"), isClear(command.stderr)]).toEqual([2, true, true]);
  });

  test("a missing, an empty and a wrong models folder", async () => {
    await using place = await Place.make();
    await expectRefusal(place, ["--models", "nowhere"], 1, "nowhere");
    await mkdir(place.path("empty"));
    await expectRefusal(place, ["--models", "empty"], 1, "empty");
    await Bun.write(place.path("file"), "x");
    await expectRefusal(place, ["--models", "file"], 1, "file");
  });

  test("a bundle with one byte changed, a truncated graph, a damaged manifest", async () => {
    await using place = await Place.make();
    await mkdir(place.path("good"));
    await buildInto(place.path("good/m"));
    const damaged = async (file: string, change: (bytes: Uint8Array) => Uint8Array) => {
      await rm(place.path("bad"), { recursive: true, force: true });
      await cp(place.path("good"), place.path("bad"), { recursive: true });
      const path = place.path(join("bad/m", file));
      await Bun.write(path, change(await Bun.file(path).bytes()));
    };
    const flip = (bytes: Uint8Array) => bytes.map((byte, at) => (at === bytes.length >> 1 ? byte ^ 1 : byte));
    for (const file of ["prefill.onnx", "denoise.onnx", "tokenizer.json", "norm.json", "parity/top.jpg"]) {
      await damaged(file, flip);
      await expectRefusal(place, ["--models", "bad"], 1, file, "changed");
    }
    await damaged("denoise.onnx", (bytes) => bytes.slice(0, 1000));
    await expectRefusal(place, ["--models", "bad"], 1, "denoise.onnx", "1000 bytes");
    await damaged("manifest.json", (bytes) => bytes.slice(0, 500));
    await expectRefusal(place, ["--models", "bad"], 1, "manifest.json", "not JSON");
  });

  test("a taken port and a taken data folder, which names the first process", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const port = new URL(server.ready.url).port;
    const taken = await place.run(["serve", "--dev", "--port", port, "--data", "other"]);
    expect([taken.code, isClear(taken.stderr)]).toEqual([1, true]);
    expect(taken.stderr).toContain(port);
    const second = await place.run(["serve", "--dev", "--port", "0"]);
    expect([second.code, isClear(second.stderr)]).toEqual([2, true]);
    expect(second.stderr).toContain(String(server.child.pid));
  });

  test("a reference bundle without --dev", async () => {
    await using place = await Place.make();
    const ended = await place.run(["serve", "--port", "0"]);
    expect([ended.code, isClear(ended.stderr)]).toEqual([2, true]);
    expect(ended.stderr).toContain("allow_reference");
  });
});

describe("a running server", () => {
  test("answers garbage, damaged and wrong requests with error objects and goes on", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const [top = new Uint8Array(), left = new Uint8Array(), right = new Uint8Array()] = await frames();
    const cut = top.subarray(0, top.length / 2);
    const cases: [string | Uint8Array, number, string][] = [
      ["", 400, "invalid_body"],
      ["{", 400, "invalid_body"],
      ["[]", 400, "invalid_body"],
      [new Uint8Array([0xff, 0xfe, 0x00, 0x80]), 400, "invalid_body"],
      [`{"a":${"[".repeat(10_000)}`, 400, "invalid_body"],
      [requestOf([cut, left, right]), 400, "invalid_image"],
      [requestOf([new Uint8Array([1, 2, 3]), left, right]), 400, "unsupported_image_format"],
      [requestOf([top, left]), 400, "image_count_mismatch"],
      [requestOf([top, left, right], { robot_state: null }), 400, "state_missing"],
      [requestOf([new Uint8Array(262_145).fill(255), left, right]), 413, "image_too_large"],
      [`{"pad":"${"x".repeat(8 * 2 ** 20)}"}`, 413, "request_too_large"],
    ];
    for (const [body, status, code] of cases) {
      const response = await server.post(body);
      const { error } = (await response.json()) as { error: { code: string; message: string; type: string } };
      expect([response.status, error.code, isClear(error.message)]).toEqual([status, code, true]);
      expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{24,}$/);
    }
    expect((await chunkOf(await server.post(requestOf([top, left, right])))).actions.length).toBe(30);
    const bare = await fetch(`${server.ready.url}/v1/chat/completions`, { method: "POST", body: "x" });
    expect([bare.status, ((await bare.json()) as { error: { code: string } }).error.code]).toEqual([
      401,
      "missing_api_key",
    ]);
    // Every frame slot came back from all of that.
    const metrics = await (await fetch(`${server.ready.ops_url}/metrics`)).text();
    expect(metrics).toMatch(/^tendon_engine_frames_free 1536$/m);
    expect(metrics).toMatch(/^tendon_engine_chunks_free 128$/m);
    expect(await server.stop()).toBe(0);
  });

  test("killed mid-request leaves a folder that the next one takes over", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const body = requestOf(await frames());
    const running = Array.from({ length: 8 }, () => server.post(body).then((r) => r.arrayBuffer()));
    const cut = Promise.allSettled(running);
    await server.busy();
    server.child.kill("SIGKILL");
    await server.child.exited;
    await cut;
    const next = await place.serve();
    expect(next.ready.account).toBe(server.ready.account);
    expect(next.ready.api_key).toBe(server.ready.api_key);
    expect((await chunkOf(await next.post(body))).actions.length).toBe(30);
  });

  test("told to end, it answers what runs and exits 0", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const body = requestOf(await frames());
    await (await server.post(body)).arrayBuffer();
    const running = Array.from({ length: 6 }, () => server.post(body));
    // The first of them is under way when the signal comes.
    await server.busy();
    const code = server.stop();
    const answers = await Promise.allSettled(running);
    expect(await code).toBe(0);
    const statuses = answers.map((answer) => (answer.status === "fulfilled" ? answer.value.status : 0));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
  });
});

describe("told to end while work does not end", () => {
  test("it exits with 0 within 5 s", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const { hostname, port } = new URL(server.ready.url);
    const socket = await Bun.connect({ hostname, port: Number(port), socket: { data: () => {} } });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.ready.api_key}\r\n`;
    socket.write(`${head}Content-Length: 1000\r\n\r\n{`);
    // The route waits for the rest of the body once it is counted, which a small one is from its beginning.
    for (;;) {
      const metrics = await (await fetch(`${server.ready.ops_url}/metrics`)).text();
      if (/^tendon_ingress_bytes 1000$/m.test(metrics)) break;
      await Bun.sleep(1);
    }
    const start = performance.now();
    expect(await server.stop()).toBe(0);
    expect(performance.now() - start).toBeLessThan(5_000);
    socket.end();
  }, 20_000);
});

describe("a reader that has gone", () => {
  test("ends a command quietly", async () => {
    await using place = await Place.make();
    for (const words of [["--help"], ["serve", "--help"], ["models", "--json"], ["models"]]) {
      expect([words, await place.runUnread(words)]).toEqual([words, { code: 0, stdout: "", stderr: "" }]);
    }
  });
});

if (EXECUTABLE !== undefined) {
  describe("the executable's cache folder", () => {
    test("is unpacked once, mended when it is damaged, private", async () => {
      await using place = await Place.make();
      await (await place.serve()).stop();
      const cache = join(place.home, ".cache/tendon");
      const [found, ...more] = await Array.fromAsync(new Bun.Glob("*/lib/libtendon.so").scan(cache));
      expect([typeof found, more]).toEqual(["string", []]);
      expect((await place.run(["doctor"])).stdout).toContain(`unpacked in ${cache}`);
      const library = Bun.file(join(cache, found ?? ""));
      const whole = await library.bytes();
      await Bun.write(library, whole.slice(0, 1000));
      const server = await place.serve();
      expect((await chunkOf(await server.post(requestOf(await frames())))).actions.length).toBe(30);
      expect((await library.bytes()).length).toBe(whole.length);
      expect((await Bun.file(join(cache, found ?? "", "../..")).stat()).mode & 0o777).toBe(0o700);
    });

    test("where there can be none, memory files serve, and doctor says so", async () => {
      await using place = await Place.make();
      await Bun.write(place.path("file"), "not a folder");
      const nowhere = { XDG_CACHE_HOME: place.path("file") };
      const server = await place.serve([], nowhere);
      expect((await chunkOf(await server.post(requestOf(await frames())))).actions.length).toBe(30);
      expect((await place.run(["doctor"], nowhere)).stdout).toContain("memory");
    });

    test("on a full disk memory files serve", async () => {
      await using place = await Place.make();
      const full = place.path("full");
      await mkdir(full);
      const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "none", full]);
      expect(mounted.exitCode).toBe(0);
      try {
        const server = await place.serve([], { XDG_CACHE_HOME: full });
        expect((await chunkOf(await server.post(requestOf(await frames())))).actions.length).toBe(30);
        await server.stop();
      } finally {
        Bun.spawnSync(["umount", "-l", full]);
      }
    });
  });
}
