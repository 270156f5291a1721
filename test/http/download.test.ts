/** Replies as streams of bytes, over a real connection. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { NO_BODY } from "../../src/http/body-rules.ts";
import { byteStream, type Source } from "../../src/http/download.ts";
import { NO_KEY, route } from "../../src/http/route.ts";
import { LIMITS } from "../../src/limits.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { kit, served } from "./kit.ts";

const MiB = 2 ** 20;

/** A source of `count` pieces of 64 KiB; with `fail` the last one throws. */
class Pieces implements Source {
  pulls = 0;
  closes = 0;
  readonly closed = Promise.withResolvers<void>();
  constructor(
    private readonly count: number,
    private readonly fail = false,
  ) {}

  async pull(): Promise<Uint8Array | undefined> {
    this.pulls += 1;
    if (this.fail && this.pulls === this.count) throw new Error("the disk is gone");
    return this.pulls > this.count ? undefined : new Uint8Array(64 * 1024).fill(this.pulls);
  }

  async close(): Promise<void> {
    this.closes += 1;
    this.closed.resolve();
  }
}

async function serving(source: Source, before: () => Promise<void> = async () => {}, options = {}) {
  const at = await kit(options);
  const server = served(at, [
    route({
      method: "GET",
      path: "/file",
      name: "fake",
      key: NO_KEY,
      body: NO_BODY,
      handle: async () => {
        await before();
        return { status: 200, body: source, headers: { etag: '"x"' } };
      },
    }),
  ]);
  return {
    at,
    url: `${server.url}/file`,
    port: server.port,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("every piece arrives, in order, and the source is closed once", async () => {
  const source = new Pieces(40);
  await using server = await serving(source);
  const response = await fetch(server.url);
  const bytes = new Uint8Array(await response.arrayBuffer());
  expect([response.headers.get("content-type"), response.headers.get("etag")]).toEqual([
    "application/octet-stream",
    '"x"',
  ]);
  expect([bytes.length, bytes[0], bytes.at(-1)]).toEqual([40 * 64 * 1024, 1, 40]);
  await server.at.deps.lifecycle.drain();
  expect([source.pulls, source.closes]).toEqual([41, 1]);
});

test("nothing is read ahead of a client that does not read, and its leaving closes the source", async () => {
  const source = new Pieces(16 * 1024);
  await using server = await serving(source);
  const socket = connect(server.port, "127.0.0.1", () => socket.write("GET /file HTTP/1.1\r\nHost: x\r\n\r\n"));
  socket.on("error", () => {}).pause();
  let pulls = -1;
  while (pulls !== source.pulls) {
    pulls = source.pulls;
    await Bun.sleep(100);
  }
  // What the connection itself holds, and no more: the file has a gigabyte.
  expect(pulls * 64 * 1024).toBeLessThan(32 * MiB);
  socket.destroy();
  await source.closed.promise;
  await server.at.deps.lifecycle.drain();
  expect([source.closes, server.at.logged]).toEqual([1, []]);
}, 30_000);

const { readMs, readBytesMin } = LIMITS;

/** A connection that asks for the file. */
function asking(port: number) {
  const socket = connect(port, "127.0.0.1", () => socket.write("GET /file HTTP/1.1\r\nHost: x\r\n\r\n"));
  return socket.on("error", () => {});
}

test("a client that takes nothing is cut off, however much its connection holds", async () => {
  const clock = new FakeClock();
  const source = new Pieces(16 * 1024);
  await using server = await serving(source, undefined, { clock });
  const socket = asking(server.port).pause();
  for (let pulls = -1; pulls !== source.pulls; await Bun.sleep(100)) pulls = source.pulls;
  clock.advance(readMs - 1);
  expect([source.closes, server.at.logged]).toEqual([0, []]);
  clock.advance(1);
  await source.closed.promise;
  await server.at.deps.lifecycle.drain();
  expect(server.at.logged).toMatchObject([{ event: "download cut" }]);
  // What lies in the connection comes, and then its end before that of the file.
  let bytes = 0;
  socket.on("data", (block) => {
    bytes += block.length;
  });
  await new Promise((resolve) => socket.on("close", resolve).resume());
  expect(bytes).toBeLessThan(32 * MiB);
  expect(clock.armed).toBe(0);
}, 30_000);

test("only a client that takes less than the least rate is cut off, not one that waits for the source", async () => {
  /** What becomes of 64 pieces of which the client takes `piecesInSpan` in each span, while the source takes long for each. */
  const taken = async (piecesInSpan: number) => {
    const clock = new FakeClock();
    const source = new Pieces(64);
    const pull = source.pull.bind(source);
    source.pull = async () => {
      clock.advance(10 * readMs);
      return await pull();
    };
    const cut: string[] = [];
    const reader = byteStream(source, { clock, cut: () => cut.push("cut"), ended: () => {} }).getReader();
    for (let pieces = 0; ; pieces += 1) {
      const piece = await reader.read().catch(() => undefined);
      if (!piece || piece.done) return [pieces, cut, source.closes, clock.armed];
      clock.advance(readMs / piecesInSpan);
    }
  };
  const least = readBytesMin / (64 * 1024);
  expect(await taken(least)).toEqual([64, [], 1, 0]);
  expect(await taken(least - 1)).toEqual([least - 1, ["cut"], 1, 0]);
});

test("a source that fails breaks the connection off, and the log has why", async () => {
  const source = new Pieces(3, true);
  await using server = await serving(source);
  const response = await fetch(server.url);
  expect(await response.arrayBuffer().catch(() => "broken")).toBe("broken");
  await server.at.deps.lifecycle.drain();
  expect(source.closes).toBe(1);
  expect(server.at.logged).toMatchObject([
    { event: "request fault", facts: { stack: expect.stringContaining("the disk is gone") } },
  ]);
});

test("a client that has left before the answer began closes the source too", async () => {
  const source = new Pieces(40);
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  await using server = await serving(source, async () => {
    asked.resolve();
    await go.promise;
  });
  const client = new AbortController();
  const response = fetch(server.url, { signal: client.signal }).catch(() => "left");
  await asked.promise;
  client.abort();
  expect(await response).toBe("left");
  // Until the server has seen it.
  await Bun.sleep(50);
  go.resolve();
  await source.closed.promise;
  await server.at.deps.lifecycle.drain();
  expect(source.closes).toBe(1);
});
