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

/** Sends `bytes` bytes at the pace of the connection; stops when it is closed. */
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

/** Sends a byte every now and then, until its connection is closed. */
async function trickle(socket: Socket): Promise<void> {
  const timer = setInterval(() => socket.write("x"), 5);
  socket.once("close", () => clearInterval(timer));
}

const FULL = new Failure(FAKE.fake_unavailable, "the disk is full");

/** A body that does not come whole: what its client does, and how it ends. */
interface Broken {
  readonly ends: Streamed;
  readonly client: (socket: Socket) => unknown;
  readonly bounds?: Partial<StreamBounds>;
  readonly take?: (bytes: number) => Promise<Failure | undefined>;
  readonly headers?: string;
  /** Nothing of it was read. */
  readonly unread?: true;
}

const BROKEN: Readonly<Record<string, Broken>> = {
  "whose connection is cut": { ends: "cut", client: (socket) => send(socket, 2 * MiB).then(() => socket.destroy()) },
  "that goes idle": { ends: "idle", bounds: { idleMs: 30 }, client: (socket) => send(socket, MiB) },
  "that trickles: it never stops, and brings too little": {
    ends: "idle",
    bounds: { idleMs: 60, idleBytesMin: 1_000 },
    client: trickle,
  },
  "that takes longer than it may in all, though it never stops": {
    ends: "late",
    bounds: { totalMs: 60 },
    client: trickle,
  },
  "whose sink hangs longer than the body may take in all": {
    ends: "late",
    bounds: { totalMs: 60 },
    take: () => new Promise(() => {}),
    client: (socket) => send(socket, MiB),
  },
  "that announces more than the limit, before a byte of it is read": {
    ends: "too_large",
    bounds: { bytesMax: 4 * MiB },
    client: () => {},
    unread: true,
  },
  "that announces no length where one is needed": {
    ends: "length_missing",
    bounds: { lengthNeeded: true },
    headers: "Transfer-Encoding: chunked",
    client: (socket) => socket.write("1\r\nx\r\n0\r\n\r\n"),
    unread: true,
  },
  "that the sink cannot take, with the sink's own failure": {
    ends: FULL,
    take: async (bytes) => (bytes > MiB ? FULL : undefined),
    client: (socket) => send(socket, 10 * MiB),
  },
};

describe("nothing is kept of a body", () => {
  for (const [which, { ends, client, bounds, take, headers, unread }] of Object.entries(BROKEN)) {
    test(which, async () => {
      const sink = new Counting(take);
      await using server = await pouring(sink, bounds);
      const socket = await opened(server.port, headers ?? `Content-Length: ${10 * MiB}`);
      await Promise.race([client(socket), server.ended]);
      expect([await server.ended, sink.aborts]).toEqual([ends, 1]);
      if (unread) expect(sink.bytes).toBe(0);
      socket.destroy();
    });
  }

  test("that passes the limit in chunks, as soon as it does", async () => {
    const sink = new Counting();
    await using server = await pouring(sink, { bytesMax: 4 * MiB });
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(MiB)),
    });
    await fetch(server.url, { method: "PUT", body }).catch(() => undefined);
    expect([await server.ended, sink.aborts, sink.bytes <= 4 * MiB]).toEqual(["too_large", 1, true]);
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
