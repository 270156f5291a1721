/** Bodies as streams into a sink, over a real connection. */
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { STREAM } from "../../src/http/body-rules.ts";
import { type Sink, type StreamBounds, type Streamed, streamBody } from "../../src/http/body-stream.ts";
import { NO_KEY, route } from "../../src/http/route.ts";
import { Failure } from "../../src/std/failure.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { FAKE, kit, served } from "./kit.ts";

const MiB = 2 ** 20;

/** Counts what it is given, and how often it was told that nothing more comes. */
class Counting implements Sink {
  bytes = 0;
  writing = 0;
  writingMost = 0;
  aborts = 0;
  constructor(private readonly take: (bytes: number) => Promise<Failure | undefined> = async () => undefined) {}

  async write(bytes: Uint8Array): Promise<Failure | undefined> {
    expect(this.aborts).toBe(0);
    this.bytes += bytes.length;
    this.writing += 1;
    this.writingMost = Math.max(this.writingMost, this.writing);
    const failure = await this.take(this.bytes);
    this.writing -= 1;
    return failure;
  }

  async abort(): Promise<void> {
    this.aborts += 1;
  }
}

const BOUNDS: StreamBounds = { bytesMax: 400 * MiB, idleMs: 5_000 };

/** A server whose one route pours bodies into the sink; `ended` is how the next one ends. */
async function pouring(sink: Sink, bounds: Partial<StreamBounds> = {}) {
  const at = await kit();
  const ended = Promise.withResolvers<Streamed>();
  const server = served(at, [
    route({
      method: "PUT",
      path: "/file",
      name: "fake",
      key: NO_KEY,
      body: STREAM,
      handle: async ({ body }) => {
        const outcome = await body(sink, { ...BOUNDS, ...bounds });
        expect(at.deps.ingress.bytes).toBe(0);
        ended.resolve(outcome);
        return { status: 200, body: JSON.stringify(outcome) };
      },
    }),
  ]);
  return {
    at,
    ended: ended.promise,
    url: `${server.url}/file`,
    port: server.port,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function opened(port: number, headers: string): Promise<Socket> {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  const socket = connect(port, "127.0.0.1", () => {
    socket.write(`PUT /file HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`);
    resolve(socket);
  });
  // That the server ends the connection is looked at from its side.
  socket.on("error", () => {});
  return promise;
}

/** Sends so many bytes as the connection takes them; stops when it is closed. */
async function send(socket: Socket, bytes: number): Promise<void> {
  const piece = Buffer.alloc(MiB, 7);
  const closed = new Promise<void>((done) => socket.once("close", done));
  for (let left = bytes; left > 0 && !socket.destroyed; left -= piece.length) {
    const more = socket.write(piece.subarray(0, Math.min(left, piece.length)));
    if (!more) await Promise.race([new Promise<void>((done) => socket.once("drain", done)), closed]);
  }
}

test("300 MiB go through in the memory of some pieces, one at a time, without a share of the budget", async () => {
  let first: number | undefined;
  let growth = 0;
  const sink = new Counting(async (bytes) => {
    if (bytes < 30 * MiB) return undefined;
    // What has been taken is garbage: only what is still held counts.
    if (bytes % (10 * MiB) < MiB) Bun.gc(true);
    const now = process.memoryUsage.rss();
    first ??= now;
    growth = Math.max(growth, now - first);
    return undefined;
  });
  await using server = await pouring(sink);
  const socket = await opened(server.port, `Content-Length: ${300 * MiB}`);
  await send(socket, 300 * MiB);
  expect(await server.ended).toBe(300 * MiB);
  expect([sink.bytes, sink.writingMost, sink.aborts]).toEqual([300 * MiB, 1, 0]);
  expect(growth).toBeLessThan(24 * MiB);
  socket.destroy();
}, 60_000);

test("a slow sink makes the client wait, and is not taken for an idle connection", async () => {
  let slow = 3;
  const sink = new Counting(async () => {
    slow -= 1;
    if (slow >= 0) await Bun.sleep(400);
    return undefined;
  });
  await using server = await pouring(sink, { idleMs: 300 });
  const socket = await opened(server.port, `Content-Length: ${64 * MiB}`);
  let sent = 0;
  const sending = send(socket, 64 * MiB).then(() => {
    sent = 64 * MiB;
  });
  await Bun.sleep(200);
  expect([sent, sink.bytes < 32 * MiB]).toEqual([0, true]);
  await sending;
  expect([await server.ended, sink.writingMost, sink.aborts]).toEqual([64 * MiB, 1, 0]);
  socket.destroy();
}, 60_000);

describe("nothing is kept of a body", () => {
  test("whose connection is cut", async () => {
    const sink = new Counting();
    await using server = await pouring(sink);
    const socket = await opened(server.port, `Content-Length: ${10 * MiB}`);
    await send(socket, 2 * MiB);
    socket.destroy();
    expect([await server.ended, sink.aborts]).toEqual(["cut", 1]);
  });

  test("that goes idle", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { idleMs: 30 });
    const socket = await opened(server.port, `Content-Length: ${10 * MiB}`);
    await send(socket, MiB);
    expect([await server.ended, sink.aborts]).toEqual(["idle", 1]);
    socket.destroy();
  });

  test("that trickles: it never stops, and brings too little", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { idleMs: 60, idleBytesMin: 1_000 });
    const socket = await opened(server.port, `Content-Length: ${10 * MiB}`);
    const timer = setInterval(() => socket.write("x"), 5);
    expect([await server.ended, sink.aborts]).toEqual(["idle", 1]);
    clearInterval(timer);
    socket.destroy();
  });

  test("that takes longer than it may in all, though it never stops", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { totalMs: 60 });
    const socket = await opened(server.port, `Content-Length: ${10 * MiB}`);
    const timer = setInterval(() => socket.write("x"), 5);
    expect([await server.ended, sink.aborts]).toEqual(["late", 1]);
    clearInterval(timer);
    socket.destroy();
  });

  test("whose sink hangs longer than the body may take in all", async () => {
    const sink = new Counting(() => new Promise(() => {}));
    await using server = await pouring(sink, { totalMs: 60 });
    const socket = await opened(server.port, `Content-Length: ${MiB}`);
    await send(socket, MiB);
    expect([await server.ended, sink.aborts]).toEqual(["late", 1]);
    socket.destroy();
  });

  test("that passes the limit in chunks, as soon as it does", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { bytesMax: 4 * MiB });
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(MiB)),
    });
    await fetch(server.url, { method: "PUT", body }).catch(() => undefined);
    expect([await server.ended, sink.aborts, sink.bytes <= 4 * MiB]).toEqual(["too_large", 1, true]);
  });

  test("that announces more than the limit, before a byte of it is read", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { bytesMax: 4 * MiB });
    const socket = await opened(server.port, `Content-Length: ${5 * MiB}`);
    expect([await server.ended, sink.aborts, sink.bytes]).toEqual(["too_large", 1, 0]);
    socket.destroy();
  });

  test("that announces no length where one is needed", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { lengthNeeded: true });
    const socket = await opened(server.port, "Transfer-Encoding: chunked");
    socket.write("1\r\nx\r\n0\r\n\r\n");
    expect([await server.ended, sink.aborts, sink.bytes]).toEqual(["length_missing", 1, 0]);
    socket.destroy();
  });

  test("that is longer or shorter than it announces", async () => {
    for (const [announced, bytes] of [
      [3, 5],
      [7, 5],
    ]) {
      const sink = new Counting();
      const headers = { "content-length": String(announced) };
      const request = new Request("http://localhost/", { method: "PUT", body: new Uint8Array(bytes ?? 0), headers });
      expect(await streamBody(request, sink, { ...BOUNDS, clock: new FakeClock() })).toBe("cut");
      expect(sink.aborts).toBe(1);
    }
  });

  test("that the sink cannot take, with the sink's own failure", async () => {
    const full = new Failure(FAKE.fake_unavailable, "the disk is full");
    const sink = new Counting(async (bytes) => (bytes > MiB ? full : undefined));
    await using server = await pouring(sink);
    const socket = await opened(server.port, `Content-Length: ${64 * MiB}`);
    await Promise.race([send(socket, 64 * MiB), server.ended]);
    expect([await server.ended, sink.aborts]).toEqual([full, 1]);
    socket.destroy();
  });

  test("whose sink breaks, and the error is not lost", async () => {
    const sink = new Counting(async () => {
      throw new Error("a bug");
    });
    const request = new Request("http://localhost/", { method: "PUT", body: "x" });
    const streamed = streamBody(request, sink, { ...BOUNDS, clock: new FakeClock() });
    expect(await streamed.catch((error: Error) => error.message)).toBe("a bug");
    expect(sink.aborts).toBe(1);
  });
});

test("an empty body is a whole one, and no timer stays", async () => {
  const [sink, clock] = [new Counting(), new FakeClock()];
  const request = new Request("http://localhost/", { method: "PUT" });
  expect(await streamBody(request, sink, { ...BOUNDS, totalMs: 1_000, clock })).toBe(0);
  expect([sink.aborts, clock.armed]).toEqual([0, 0]);
});
