/** Server-sent events over a real connection: each is written whole, and who does not read them is cut off. */
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { NO_BODY } from "../../src/http/body-rules.ts";
import { NO_KEY, route } from "../../src/http/route.ts";
import type { Events, Send } from "../../src/http/sse.ts";
import { Failure } from "../../src/std/failure.ts";
import { FAKE, type Kit, kit, served } from "./kit.ts";

const MiB = 2 ** 20;

/** A server whose one route streams what `write` sends; `left` resolves when it is told that the client has left. */
async function streaming(write: (send: Send) => Promise<Failure | undefined>, unsentBytesMax = MiB) {
  const at: Kit = await kit();
  const left = Promise.withResolvers<"left">();
  let leaves = 0;
  const events: Events = {
    unsentBytesMax,
    write,
    failed: ({ message }) => [`data: ${message}\n\n`],
    left: () => {
      leaves += 1;
      left.resolve("left");
    },
  };
  const server = served(at, [
    route({
      method: "GET",
      path: "/events",
      name: "fake",
      key: NO_KEY,
      body: NO_BODY,
      handle: async () => ({ status: 200, body: events }),
    }),
  ]);
  return {
    at,
    url: `${server.url}/events`,
    port: server.port,
    left: left.promise,
    leaves: () => leaves,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("events arrive one by one while they are written, then the stream ends", async () => {
  const go = Promise.withResolvers<void>();
  await using server = await streaming(async (send) => {
    send("data: one\n\n");
    await go.promise;
    send("data: two\n\n");
    return undefined;
  });
  const response = await fetch(server.url);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const reader = response.body?.getReader();
  const text = async () => new TextDecoder().decode((await reader?.read())?.value);
  expect(await text()).toBe("data: one\n\n");
  go.resolve();
  expect(await text()).toBe("data: two\n\n");
  expect((await reader?.read())?.done).toBe(true);
  expect([server.leaves(), server.at.logged]).toEqual([0, []]);
});

test("a failure after the start and a bug are written as the route says, and the request ends", async () => {
  const bug = async () => {
    throw new Error("a bug");
  };
  const cases = [
    [async () => new Failure(FAKE.fake_unavailable, "not now"), "data: not now\n\n", []],
    [
      bug,
      expect.stringMatching(/^data: the service failed because of a bug .* report request req_\w+\n\n$/),
      ["request fault"],
    ],
  ] as const;
  for (const [write, text, logged] of cases) {
    await using server = await streaming(write);
    expect(await (await fetch(server.url)).text()).toEqual(text);
    expect(server.at.logged.map(({ event }) => event)).toEqual([...logged]);
    await server.at.deps.lifecycle.drain();
  }
});

test("a client that stops reading is cut off once the bound is passed; the writer is not slowed down, and nothing grows", async () => {
  const event = `data: ${"x".repeat(64 * 1024)}\n\n`;
  const written = Promise.withResolvers<number>();
  await using server = await streaming(async (send) => {
    const from = process.memoryUsage.rss();
    for (let count = 0; count < 2_000; count += 1) {
      send(event);
      await Bun.sleep(0);
    }
    Bun.gc(true);
    written.resolve(process.memoryUsage.rss() - from);
    return undefined;
  });
  const socket = connect(server.port, "127.0.0.1", () => socket.write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n"));
  socket.pause();
  expect(await server.left).toBe("left");
  // 125 MiB were written; the connection and the bound hold some.
  expect(await written.promise).toBeLessThan(32 * MiB);
  let received = "";
  const ended = new Promise<void>((done) => socket.once("close", done));
  socket
    .on("error", () => {})
    .on("data", (data) => {
      received += data;
    });
  socket.resume();
  await ended;
  // It learns that the stream is broken: the last chunk, of length zero, is not there.
  expect([received.endsWith("0\r\n\r\n"), received.length < 32 * MiB]).toEqual([false, true]);
  expect(server.leaves()).toBe(1);
  expect(server.at.logged).toMatchObject([{ event: "stream cut", facts: { request: expect.stringMatching(/^req_/) } }]);
  await server.at.deps.lifecycle.drain();
}, 30_000);

test("a client that reads gets every event, however many", async () => {
  await using server = await streaming(async (send) => {
    for (let count = 0; count < 2_000; count += 1) {
      send(`data: ${count} ${"x".repeat(16 * 1024)}\n\n`);
      if (count % 10 === 0) await Bun.sleep(1);
    }
    return undefined;
  }, 8 * MiB);
  const text = await (await fetch(server.url)).text();
  expect([...text.matchAll(/^data: (\d+) x+$/gm)].map(([, count]) => Number(count))).toEqual([...Array(2_000).keys()]);
  expect([server.leaves(), server.at.logged]).toEqual([0, []]);
}, 30_000);

test("a client that leaves is told to the route once, and what is written after that does nothing", async () => {
  const left = Promise.withResolvers<void>();
  await using server = await streaming(async (send) => {
    send("data: one\n\n");
    await left.promise;
    send("data: two\n\n");
    return undefined;
  });
  const client = new AbortController();
  const response = await fetch(server.url, { signal: client.signal });
  await response.body?.getReader().read();
  client.abort();
  expect(await server.left).toBe("left");
  left.resolve();
  await server.at.deps.lifecycle.drain();
  expect([server.leaves(), server.at.logged]).toEqual([1, []]);
});
