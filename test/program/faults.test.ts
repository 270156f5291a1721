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

describe("serve refuses to start", () => {
  test("a bundle with one byte changed, a truncated graph, a damaged manifest", async () => {
    await using place = await Place.make();
    await mkdir(place.path("good"));
    await buildInto(place.path("good/m"));
    const graph = await Bun.file(place.path("good/m/denoise.onnx")).bytes();
    const damages: [file: string, bytes: Uint8Array | string, says: string][] = [
      ["denoise.onnx", graph.map((byte, at) => (at === graph.length >> 1 ? byte ^ 1 : byte)), "changed"],
      ["denoise.onnx", graph.slice(0, 1000), "1000 bytes"],
      ["manifest.json", "{", "not JSON"],
    ];
    for (const [file, bytes, says] of damages) {
      await rm(place.path("bad"), { recursive: true, force: true });
      await cp(place.path("good"), place.path("bad"), { recursive: true });
      await Bun.write(place.path(`bad/m/${file}`), bytes);
      const ended = await place.run(["serve", "--dev", "--port", "0", "--models", "bad"]);
      expect([ended.code, isClear(ended.stderr), ended.stderr]).toEqual([1, true, expect.stringContaining(file)]);
      expect(ended.stderr).toContain(says);
    }
  });

  test("a taken data folder: it names the first process", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const second = await place.run(["serve", "--dev", "--port", "0"]);
    expect([second.code, isClear(second.stderr)]).toEqual([2, true]);
    expect(second.stderr).toContain(String(server.child.pid));
  });
});

describe("a running server", () => {
  test("answers garbage, damaged and wrong requests with error objects and goes on", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const [top = new Uint8Array(), left = new Uint8Array(), right = new Uint8Array()] = await frames();
    const cut = top.subarray(0, top.length / 2);
    const cases: [string | Uint8Array, number, string][] = [
      ["{", 400, "invalid_body"],
      [requestOf([cut, left, right]), 400, "invalid_image"],
      [requestOf([new Uint8Array([1, 2, 3]), left, right]), 400, "unsupported_image_format"],
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
    expect([await server.metric("engine_frames_free"), await server.metric("engine_chunks_free")]).toEqual([1536, 128]);
    expect(await server.stop()).toBe(0);
  });

  test("rows that jump from the robot's state are model_failure; rows out of their range are clamped to it, said and counted", async () => {
    await using place = await Place.make();
    const server = await place.serve();
    const far = { joint_position: [50, ...Array<number>(11).fill(0.1)], gripper_position: [0.5, 1] };
    const ids = { session_id: "s", observation_id: "o", expected_step: 0 };
    const failed = await server.post(requestOf(await frames(), { ...ids, robot_state: far }));
    expect(await failed.json()).toMatchObject({ error: { code: "model_failure", type: "api_error" } });
    const { actions, clamped, step } = await chunkOf(await server.post(requestOf(await frames(), ids)));
    expect(step).toBe(0);
    expect(clamped).toBeGreaterThan(0);
    expect(await server.metric("engine_values_clamped_total")).toBe(clamped ?? 0);
    const grippers = actions.flatMap((row) => [row[6], row[13]]);
    expect(grippers.every((value) => value !== undefined && value >= 0 && value <= 1)).toBe(true);
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
    while ((await server.metric("ingress_bytes")) !== 1000) await Bun.sleep(1);
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
