/** Contract section 1: unknown keys and `/oauth/*` are bounded per address, before the store is asked. */
import { expect, test } from "bun:test";
import { newKey } from "../../src/account/key.ts";
import { listen } from "../../src/http/listen.ts";
import { LIMITS } from "../../src/limits.ts";
import { base62 } from "../../src/std/ids.ts";
import { Problem } from "../../src/std/problem.ts";
import { signedIn } from "../account/pages/browser.ts";
import { observation, type Stage, stage } from "../robot/stage.ts";

const BAD = newKey(0).key;
const { unknownKeysMax, unknownKeysSeconds, oauthTriesMax } = LIMITS;

/** `listens`: so that requests come from an address, this machine's, which may name another one. */
async function listens(at: Stage) {
  const listener = listen(at.app, { host: "127.0.0.1", port: 0 });
  if (listener instanceof Problem) throw new Error(listener.message);
  const ask = (key: string, client: string) =>
    fetch(`${listener.url}/v1/chat/completions`, {
      method: "POST",
      body: "{}",
      headers: { authorization: `Bearer ${key}`, "x-forwarded-for": client },
    });
  return { ask, url: listener.url, [Symbol.asyncDispose]: () => listener.stop() };
}

test("unknown keys of one address: after its share 429 rate_limited with Retry-After, and the store is not asked", async () => {
  const at = await stage();
  await using server = await listens(at);
  for (let turn = 0; turn < unknownKeysMax; turn += 1)
    expect((await server.ask(newKey(0).key, "198.51.100.7")).status).toBe(401);
  const reads = at.store.keyReads;
  for (const wrong of [newKey(0).key, "mistyped", newKey(0).key]) {
    const refused = await server.ask(wrong, "198.51.100.7");
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
      429,
      String(unknownKeysSeconds),
      {
        error: {
          type: "rate_limit_error",
          code: "rate_limited",
          message: expect.stringContaining("too many unknown API keys came from this address; retry after 60 s"),
        },
      },
    ]);
  }
  expect([reads, at.store.keyReads]).toEqual([unknownKeysMax, unknownKeysMax]);
  // Another address of the same IPv4 network is another one; of IPv6 the /64 is one.
  expect((await server.ask(newKey(0).key, "198.51.100.8")).status).toBe(401);
  at.clock.advance(unknownKeysSeconds * 1_000);
  expect((await server.ask(newKey(0).key, "198.51.100.7")).status).toBe(401);
});

test("unknown keys: the addresses of one IPv6 /64 are counted together", async () => {
  const at = await stage();
  await using server = await listens(at);
  const statuses = new Map<number, number>();
  for (let turn = 0; turn < unknownKeysMax + 5; turn += 1) {
    const { status } = await server.ask(newKey(0).key, `2001:db8::${turn.toString(16)}`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect([...statuses]).toEqual([
    [401, unknownKeysMax],
    [429, 5],
  ]);
});

test("a lab behind one address keeps working beside a broken client: its keys pass, also after others were revoked", async () => {
  const at = await stage();
  await at.service.core.keys.refresh();
  const lab = () => at.chat(observation());
  expect((await lab()).status).toBe(200);
  const broken = () => at.chat(observation(), { headers: { authorization: `Bearer ${newKey(0).key}` } });
  const answers = await Promise.all(Array.from({ length: 1_000 }, broken));
  expect(Map.groupBy(answers, ({ status }) => status).get(429)?.length).toBe(1_000 - unknownKeysMax);
  const reads = at.store.keyReads;
  expect((await lab()).status).toBe(200);
  expect(at.store.keyReads).toBe(reads);
  // Every revocation empties the cache of keys. Then the lab's key is read again, also when a stranger shares its address.
  const other = { publicId: "o".repeat(12), sha256: new Uint8Array(32), accountId: "acct_1", name: "", createdAt: 1 };
  await at.store.accounts.keyAdd(other);
  await at.store.accounts.keyRevoke({ publicId: other.publicId, at: 2 });
  await at.service.core.keys.refresh();
  at.clock.advance(LIMITS.keysBelievedMs);
  expect((await lab()).status).toBe(200);
});

test("a wrong secret under a key's public id counts as well", async () => {
  const at = await stage();
  const { key } = at;
  await at.chat(observation());
  const forged = () => {
    const body = key.slice(0, 17) + newKey(0).key.slice(17, 53);
    const authorization = `Bearer ${body}${base62(Bun.hash.crc32(body), 6)}`;
    return at.chat(observation(), { headers: { authorization } });
  };
  const answers = await Promise.all(Array.from({ length: unknownKeysMax + 3 }, forged));
  expect(answers.map(({ status }) => status).filter((status) => status === 429)).toHaveLength(3);
  expect((await at.chat(observation())).status).toBe(200);
});

test("/oauth/token: after an address' share slow_down with Retry-After, before body and store; other routes rate_limited", async () => {
  const at = await stage();
  const post = (path: string) => at.send(`/oauth/${path}`, { method: "POST", body: "no form" });
  for (let turn = 0; turn < oauthTriesMax; turn += 1) expect((await post("token")).status).toBe(400);
  at.store.down = true;
  for (const [path, error] of [
    ["token", "slow_down"],
    ["device_authorization", "rate_limited"],
    ["revoke", "rate_limited"],
  ] as const) {
    const refused = await post(path);
    expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
      429,
      String(LIMITS.oauthSeconds),
      { error, error_description: expect.stringContaining("too many requests came from this address") },
    ]);
  }
  at.clock.advance(LIMITS.oauthSeconds * 1_000);
  expect((await post("token")).status).toBe(400);
});

test("a thousand requests at once with one good key that was not seen yet: one look-up, and none is a guess", async () => {
  const at = await stage();
  const answers = await Promise.all(Array.from({ length: 1_000 }, () => at.chat("{}")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400]));
  expect(at.store.keyReads).toBe(1);
  // With a bad one each counts, though the store is asked once.
  const bad = await Promise.all(
    Array.from({ length: unknownKeysMax + 40 }, () => at.chat("{}", { headers: { authorization: `Bearer ${BAD}` } })),
  );
  const counts = bad.map(({ status }) => status);
  expect([counts.filter((status) => status === 401).length, counts.filter((status) => status === 429).length]).toEqual([
    unknownKeysMax,
    40,
  ]);
  expect(at.store.keyReads).toBe(2);
});

test("a key that was made a moment ago works where others of its network have used up its share", async () => {
  const at = await stage();
  const browser = await signedIn(at);
  for (let turn = 0; turn < unknownKeysMax + 1; turn += 1) {
    await at.chat("{}", { headers: { authorization: `Bearer ${newKey(0).key}` } });
  }
  const page = await (await browser.post("/account/keys", { csrf: await browser.csrf(), name: "arm" })).text();
  const key = /tdn_\w{12}_\w{42}/.exec(page)?.[0];
  expect((await at.chat("{}", { headers: { authorization: `Bearer ${key}` } })).status).toBe(400);
  expect((await at.chat("{}", { headers: { authorization: `Bearer ${newKey(0).key}` } })).status).toBe(429);
});
