/** The connections to a provider: how long one may take, who waits for one, and what is learnt about those that are kept. */

import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { LIMITS } from "../../../src/limits.ts";
import { type CallOptions, Client, type ClientOptions } from "../../../src/llm/provider/client.ts";
import { Connection } from "../../../src/llm/provider/http/connection.ts";
import { systemClock } from "../../../src/std/clock.ts";
import { FakeClock } from "../../std/fake-clock.ts";
import { ScriptedProvider } from "../scripted-provider.ts";

/** Longer than a connection rests before it is known to be kept. */
const REST_MS = 60;

let provider: ScriptedProvider;
const clients: Client[] = [];

beforeEach(async () => {
  provider = await ScriptedProvider.start();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await provider[Symbol.asyncDispose]();
});

function clientOf(options: Partial<ClientOptions> = {}): Client {
  const limits = { connectMs: 5_000, firstByteMs: 3_600_000, idleMs: 3_600_000, totalMs: 7_200_000 };
  const rest = { baseUrl: provider.url, apiKey: undefined, connections: 1, clock: systemClock };
  const client = new Client({ ...limits, ...rest, ...options });
  clients.push(client);
  return client;
}

/** Why a call failed; undefined: it was answered. */
async function asked(client: Client, options: Partial<CallOptions> = {}): Promise<string | undefined> {
  const { stream = true, fresh = false, signal = new AbortController().signal } = options;
  const intake = { begin: () => undefined, bytes: () => undefined };
  const body = JSON.stringify({ stream });
  const fault = await client.call({ path: "chat/completions", body, stream, fresh, signal }, intake);
  return fault?.detail;
}

async function until(met: () => boolean): Promise<void> {
  while (!met()) await Bun.sleep(1);
}

/** A client whose clock stands still, and whose provider is known to keep its connections. */
async function known(connections = 1): Promise<{ readonly client: Client; readonly clock: FakeClock }> {
  const clock = new FakeClock();
  const client = clientOf({ clock, connections });
  expect(await asked(client)).toBeUndefined();
  clock.advance(REST_MS);
  return { client, clock };
}

/** A server of TCP that says nothing. */
async function silentServer() {
  let received = 0;
  const sockets: { readonly gone: Promise<void> }[] = [];
  const server = createServer((socket: Socket) => {
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    sockets.push({ gone });
    socket.on("error", () => {}).on("close", () => resolve());
    socket.on("data", ({ length }) => {
      received += length;
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return { sockets, port, received: () => received, [Symbol.dispose]: () => server.close().unref() };
}

describe("an attempt to connect", () => {
  test("to a server that is silent during the handshake is ended after connect_seconds, and its place is free", async () => {
    using silent = await silentServer();
    const client = clientOf({ baseUrl: `https://127.0.0.1:${silent.port}/v1`, connectMs: 50 });
    for (let run = 1; run <= 3; run += 1) {
      expect(await asked(client)).toBe("no connection: connect_seconds passed");
      expect(silent.sockets).toHaveLength(run);
      await silent.sockets.at(-1)?.gone;
    }
  });

  test("that succeeds too late is ended", async () => {
    using silent = await silentServer();
    const clock = new FakeClock();
    const address = { hostname: "127.0.0.1", port: silent.port, tls: false };
    const attempt = Connection.connect(address, { clock, connectMs: 10, moved: () => {} });
    clock.advance(10);
    expect(await attempt.catch(({ code }) => code)).toBe("connect_seconds passed");
    await until(() => silent.sockets.length === 1);
    await silent.sockets[0]?.gone;
  });

  test("leaves no timer behind, whatever becomes of it", async () => {
    const clock = new FakeClock();
    const client = clientOf({ clock });
    expect(await asked(client)).toBeUndefined();
    client.close();
    using silent = await silentServer();
    const refused = clientOf({ clock, baseUrl: `http://127.0.0.1:${silent.port}/v1` });
    silent[Symbol.dispose]();
    expect(await asked(refused)).toStartWith("no connection: ");
    expect(clock.armed).toBe(0);
  });
});

describe("who waits for a free connection", () => {
  test("does so for longer than connect_seconds", async () => {
    const { client, clock } = await known();
    provider.otherwise = { kind: "hang_inside", after: 1 };
    const first = new AbortController();
    const left = asked(client, { signal: first.signal });
    await until(() => provider.exchanges.length === 2);
    const others = Array.from({ length: 5 }, () => asked(client));
    clock.advance(60_000);
    provider.otherwise = { kind: "answer" };
    first.abort();
    expect(await left).toBe("the service stopped the call");
    expect(await Promise.all(others)).toEqual(others.map(() => undefined));
    expect(provider.accepted).toBe(2);
  });

  test("does so no longer than total_seconds", async () => {
    const { client, clock } = await known();
    provider.otherwise = { kind: "hang_inside", after: 1 };
    const first = asked(client);
    await until(() => provider.exchanges.length === 2);
    const second = asked(client);
    clock.advance(7_200_000);
    expect(await second).toBe("total_seconds passed");
    await first;
    expect(provider.exchanges).toHaveLength(2);
  });
});

describe("whether connections are kept", () => {
  test("is learnt under load: many calls at once need no more connections than there may be", async () => {
    const client = clientOf({ connections: 2 });
    const calls = Array.from({ length: 40 }, () => asked(client));
    expect(await Promise.all(calls)).toEqual(calls.map(() => undefined));
    expect([provider.exchanges.length, provider.accepted]).toEqual([40, 2]);
  });

  test("is not unlearnt from a call that is stopped", async () => {
    const { client } = await known();
    expect(await asked(client)).toBeUndefined();
    provider.play({ kind: "hang_inside", after: 1 });
    const stop = new AbortController();
    const stopped = asked(client, { signal: stop.signal });
    await until(() => provider.exchanges.length === 3);
    stop.abort();
    await stopped;
    for (let run = 0; run < 3; run += 1) expect(await asked(client)).toBeUndefined();
    expect(provider.accepted).toBe(2);
  });

  test("is not unlearnt when an idle one makes room for a new one", async () => {
    const { client } = await known();
    expect(await asked(client)).toBeUndefined();
    expect(await asked(client, { fresh: true })).toBeUndefined();
    for (let run = 0; run < 3; run += 1) expect(await asked(client)).toBeUndefined();
    expect(provider.accepted).toBe(2);
  });

  test("is not learnt from one that nobody has used", async () => {
    const clock = new FakeClock();
    const client = clientOf({ clock });
    const stop = new AbortController();
    const stopped = asked(client, { signal: stop.signal });
    stop.abort();
    await stopped;
    await until(() => provider.accepted === 1);
    await Bun.sleep(5);
    clock.advance(REST_MS);
    provider.otherwise = { kind: "answer", connection: "silent_close" };
    for (let run = 1; run <= 5; run += 1) expect(await asked(client, { stream: false })).toBeUndefined();
    expect(provider.accepted).toBe(5);
  });
});

test("an attempt whose call was stopped serves whoever waits", async () => {
  const client = clientOf({ clock: new FakeClock() });
  const stop = new AbortController();
  const stopped = asked(client, { signal: stop.signal });
  const waits = asked(client, { fresh: true });
  stop.abort();
  expect([await stopped, await waits, provider.accepted]).toEqual(["the service stopped the call", undefined, 1]);
});

test("connections that nobody uses any more are ended without a call, and then no timer runs", async () => {
  const { client, clock } = await known(3);
  await Promise.all(Array.from({ length: 3 }, () => asked(client)));
  clock.advance(REST_MS);
  expect(provider.connections).toBe(3);
  clock.advance(LIMITS.llmConnectionIdleMs + 2_000);
  await until(() => provider.connections === 0);
  expect(clock.armed).toBe(0);
});

test("a call does not hold the text of its request while it waits for its answer", async () => {
  using silent = await silentServer();
  const calls = 8;
  const bytes = 4 * 2 ** 20;
  const client = clientOf({ baseUrl: `http://127.0.0.1:${silent.port}/v1`, connections: calls });
  const held = () => {
    Bun.gc(true);
    const { heapSize, extraMemorySize } = heapStats();
    return heapSize + extraMemorySize;
  };
  const stop = new AbortController();
  const intake = { begin: () => undefined, bytes: () => undefined };
  const start = () => {
    const body = Buffer.alloc(bytes, "a").toString("latin1");
    return client.call({ path: "x", body, stream: true, fresh: false, signal: stop.signal }, intake);
  };
  const before = held();
  const ends = Array.from({ length: calls }, start);
  await until(() => silent.received() > calls * bytes);
  // What the last turn of the loop has on its stack is still held.
  await Bun.sleep(10);
  expect(held() - before).toBeLessThan((calls * bytes) / 2);
  stop.abort();
  await Promise.all(ends);
});

test("a server that ends a kept connection instead of answering on it is not known to keep them any more", async () => {
  const { client } = await known(3);
  provider.play({ kind: "raw", status: "none", chunks: [], last: "fin" });
  expect(await asked(client)).toContain("no answer");
  expect(await asked(client)).toBeUndefined();
  // The connection of that answer rests, so this one needs another.
  expect(await asked(client)).toBeUndefined();
  expect(provider.accepted).toBe(3);
});
