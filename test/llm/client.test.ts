/** Calls to a provider: what is sent again and what never, who waits for a free connection, and what ends a call. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type CallOptions, Client } from "../../src/llm/provider/client.ts";
import { type Clock, systemClock } from "../../src/std/clock.ts";
import { FakeClock } from "../std/fake-clock.ts";
import type { Script } from "./script.ts";
import { ScriptedProvider } from "./scripted-provider.ts";
import { providerConfig } from "./stage.ts";

let provider: ScriptedProvider;

beforeEach(async () => {
  provider = await ScriptedProvider.start();
});

afterEach(async () => {
  await provider[Symbol.asyncDispose]();
});

function clientOf({
  table = {},
  apiKey,
  clock = systemClock,
}: {
  table?: object;
  apiKey?: string;
  clock?: Clock;
} = {}): Client {
  const limits = { first_byte_seconds: 3_600, idle_seconds: 3_600, total_seconds: 7_200 };
  const config = providerConfig({ base_url: provider.url, protocol: "chat", connections: 1, ...limits, ...table });
  return new Client(config, apiKey, clock);
}

/** Why a call failed; undefined: it was answered. */
async function asked(client: Client, options: Partial<CallOptions> = {}): Promise<string | undefined> {
  const { stream = true, signal = new AbortController().signal } = options;
  const intake = { begin: () => undefined, bytes: () => undefined, ended: false };
  const body = JSON.stringify({ stream });
  const fault = await client.call({ path: "chat/completions", body, stream, signal }, intake);
  return fault?.detail;
}

async function until(met: () => boolean): Promise<void> {
  while (!met()) await Bun.sleep(1);
}

const ENDS: Readonly<Record<string, Script>> = {
  closed: { kind: "raw", status: "none", chunks: [], last: "fin" },
  reset: { kind: "raw", status: "none", chunks: [], last: "reset" },
};

describe.each(Object.entries(ENDS))("a request whose connection is %s without a byte", (_, end) => {
  test("is sent once more when the connection had served another one", async () => {
    const client = clientOf();
    expect(await asked(client)).toBeUndefined();
    provider.play(end);
    expect(await asked(client)).toBeUndefined();
    const [, lost, again] = provider.exchanges;
    expect([provider.exchanges.length, provider.accepted, again?.body]).toEqual([3, 2, lost?.body]);
  });

  test("is sent no third time", async () => {
    const client = clientOf();
    expect(await asked(client)).toBeUndefined();
    provider.otherwise = end;
    expect(await asked(client)).toBe("no answer: ECONNRESET");
    expect(provider.exchanges).toHaveLength(3);
  });

  test("is not sent again when the connection was a new one", async () => {
    provider.otherwise = end;
    const client = clientOf();
    for (let run = 1; run <= 3; run += 1) {
      expect(await asked(client)).toBe("no answer: ECONNRESET");
      expect(provider.exchanges).toHaveLength(run);
    }
  });

  test("is sent once more when the other one has ended, but not for us yet", async () => {
    const client = clientOf({ table: { connections: 2 } });
    provider.play({ kind: "answer" }, end);
    const { signal } = new AbortController();
    let second: Promise<string | undefined> | undefined;
    const bytes = () => {
      second = asked(client);
      return undefined;
    };
    const call = {
      path: "chat/completions",
      body: JSON.stringify({ stream: false }),
      stream: false,
      signal,
    };
    expect(await client.call(call, { begin: () => undefined, bytes, ended: false })).toBeUndefined();
    expect(await second).toBeUndefined();
    expect(provider.exchanges).toHaveLength(3);
  });
});

test.each([
  ["in the body", { kind: "cut", after: 1, gapMs: 5 }],
  ["after the head", { kind: "raw", chunks: [], last: "fin", gapMs: 5 }],
] as const)("a request whose answer is cut %s is not sent again", async (_, script) => {
  const client = clientOf();
  expect(await asked(client)).toBeUndefined();
  provider.play(script);
  expect(await asked(client)).toBe("the answer was cut off: ECONNRESET");
  expect(provider.exchanges).toHaveLength(2);
});

test("a request that was stopped is not sent again", async () => {
  const client = clientOf();
  expect(await asked(client)).toBeUndefined();
  provider.otherwise = { kind: "hang" };
  const stop = new AbortController();
  const stopped = asked(client, { signal: stop.signal });
  await until(() => provider.exchanges.length === 2);
  stop.abort();
  expect(await stopped).toBe("the service stopped the call");
  await provider.exchanges[1]?.closed;
  expect(provider.exchanges).toHaveLength(2);
});

describe("who waits for a free connection", () => {
  test("has it once another call ends, those first that wait longest", async () => {
    const client = clientOf();
    provider.play({ kind: "hang_inside", after: 1 });
    const stop = new AbortController();
    const first = asked(client, { signal: stop.signal });
    await until(() => provider.exchanges.length === 1);
    const order: number[] = [];
    const others = [0, 1, 2].map((at) => asked(client).finally(() => order.push(at)));
    await Bun.sleep(20);
    expect(provider.exchanges).toHaveLength(1);
    stop.abort();
    expect(await first).toBe("the service stopped the call");
    expect(await Promise.all(others)).toEqual([undefined, undefined, undefined]);
    expect(order).toEqual([0, 1, 2]);
  });

  test("waits no longer than total_seconds, and longer than first_byte_seconds", async () => {
    const clock = new FakeClock();
    const client = clientOf({ clock });
    provider.otherwise = { kind: "hang_inside", after: 1 };
    const first = asked(client);
    await until(() => provider.exchanges.length === 1);
    const second = asked(client);
    clock.advance(7_200_000);
    expect([await second, await first]).toEqual(["total_seconds passed", expect.stringContaining("seconds passed")]);
    expect(provider.exchanges).toHaveLength(1);
  });

  test("is not sent to the provider once it was stopped, and gives no place away", async () => {
    const client = clientOf({ table: { connections: 2 } });
    provider.play({ kind: "hang" }, { kind: "hang" });
    const stops = Array.from({ length: 4 }, () => new AbortController());
    const calls = stops.map(({ signal }) => asked(client, { signal }));
    await until(() => provider.exchanges.length === 2);
    for (const stop of stops.toReversed()) stop.abort();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["the service stopped the call"]));
    expect(provider.exchanges).toHaveLength(2);
    expect(await Promise.all(Array.from({ length: 8 }, () => asked(client)))).toEqual(Array(8).fill(undefined));
  });
});

test("many calls at once use no more connections than there may be", async () => {
  const client = clientOf({ table: { connections: 2 } });
  const calls = Array.from({ length: 40 }, () => asked(client));
  expect(await Promise.all(calls)).toEqual(calls.map(() => undefined));
  expect(provider.exchanges).toHaveLength(40);
  expect(provider.accepted).toBeLessThanOrEqual(3);
});

test("a call leaves no timer behind, whatever becomes of it", async () => {
  const clock = new FakeClock();
  const client = clientOf({ clock });
  provider.play({ kind: "answer" }, { kind: "refuse", status: 500 }, { kind: "cut", after: 1 });
  for (let run = 0; run < 3; run += 1) await asked(client);
  expect(await asked(clientOf({ clock, table: { base_url: "http://127.0.0.1:1/v1" } }))).toBe(
    "no answer: ECONNREFUSED",
  );
  expect(clock.armed).toBe(0);
});

test("a redirect is not followed, and its target gets no key", async () => {
  await using other = await ScriptedProvider.start();
  provider.otherwise = { kind: "refuse", status: 307, headers: { location: `${other.url}/chat/completions` } };
  expect(await asked(clientOf({ apiKey: "sk-secret" }))).toStartWith("status 307");
  expect([provider.exchanges.length, other.exchanges.length]).toEqual([1, 0]);
});

test("an error of the intake ends the call and its connection", async () => {
  provider.otherwise = { kind: "hang_inside", after: 1 };
  const intake = {
    begin: () => undefined,
    ended: false,
    bytes: () => {
      throw new Error("a bug");
    },
  };
  const { signal } = new AbortController();
  const body = JSON.stringify({ stream: true });
  const call = clientOf().call({ path: "chat/completions", body, stream: true, signal }, intake);
  expect(await call.catch(String)).toBe("Error: a bug");
  await provider.exchanges[0]?.closed;
});
