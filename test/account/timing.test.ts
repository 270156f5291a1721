/** The time of a check of a key does not depend on how much of its secret is right. */
import { expect, test } from "bun:test";
import { authenticate } from "../../src/account/authenticate.ts";
import { newKey } from "../../src/account/key.ts";
import { Keys } from "../../src/account/keys.ts";
import { sha256 } from "../../src/account/secret.ts";
import { base62 } from "../../src/std/ids.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { fakeStore, funded } from "./fake-store.ts";

/** The key with one character of its secret changed and a right checksum. */
function changed(key: string, at: number): string {
  const body = key.slice(0, -6);
  const other = body[at] === "0" ? "1" : "0";
  const forged = body.slice(0, at) + other + body.slice(at + 1);
  return forged + base62(Bun.hash.crc32(forged), 6);
}

/**
 * How often a sample of `one` is above one of `other`: 0.5 where their times have the same distribution. They are taken
 * alternately, so that other work of the machine falls on both.
 */
async function separation(one: () => Promise<unknown>, other: () => Promise<unknown>): Promise<number> {
  const times: [number[], number[]] = [[], []];
  for (let sample = 0; sample < 6_000; sample += 1) {
    const which = sample % 2 === 0 ? 0 : 1;
    const before = performance.now();
    await (which === 0 ? one() : other());
    times[which].push(performance.now() - before);
  }
  const [ones, others] = times.map((list) => list.slice(1_000).toSorted((a, b) => a - b)) as [number[], number[]];
  let above = 0;
  let below = 0;
  for (const time of ones) {
    while (below < others.length && (others[below] ?? 0) < time) below += 1;
    let equal = 0;
    while (below + equal < others.length && others[below + equal] === time) equal += 1;
    above += below + equal / 2;
  }
  return above / (ones.length * others.length);
}

test("a wrong secret takes as long whether its first or its last character is wrong, and reads like a key that does not exist", async () => {
  const store = fakeStore();
  await store.accounts.accountAdd(funded("a1", "one@example.org"));
  const { key, record } = newKey(0);
  await store.accounts.keyAdd({ ...record, accountId: "a1", name: "" });
  const keys = new Keys(store.accounts, new FakeClock());
  const ask = (sent: string) => async () => {
    expect(await authenticate(`Bearer ${sent}`, keys)).toMatchObject({ code: "invalid_api_key" });
  };
  const [first, last, unknown] = [changed(key, 17), changed(key, 52), newKey(0).key];
  const halfway = [await separation(ask(first), ask(last)), await separation(ask(first), ask(changed(key, 30)))].every(
    (share) => share > 0.4 && share < 0.6,
  );
  expect(halfway).toBe(true);
  // The time of a look-up may tell that a public id exists, which is no secret.
  expect(await authenticate(`Bearer ${unknown}`, keys)).toEqual(await authenticate(`Bearer ${first}`, keys));
  // The measurement can detect a difference where there is one.
  const slower = async () => {
    await ask(first)();
    for (let turn = 0; turn < 20; turn += 1) sha256(key);
  };
  expect(await separation(slower, ask(last))).toBeGreaterThan(0.6);
}, 60_000);
