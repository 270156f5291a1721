import { expect, test } from "bun:test";
import { Keys } from "../../src/account/keys.ts";
import { LIMITS } from "../../src/limits.ts";
import { StoreDown } from "../../src/store/store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { fakeStore, funded } from "./fake-store.ts";

const id = "p".repeat(12);
const key = { sha256: new Uint8Array(32).fill(7), accountId: "a1", name: "", createdAt: 1 };

async function stand() {
  const [store, clock] = [fakeStore(), new FakeClock()];
  await store.accounts.accountAdd(funded("a1", "one@example.org"));
  await store.accounts.keyAdd({ ...key, publicId: id });
  const keys = new Keys(store.accounts, clock);
  await keys.refresh();
  return { store, clock, keys };
}

test("a key that was found is not looked up again, as long as nothing was revoked", async () => {
  const { store, clock, keys } = await stand();
  for (let turn = 0; turn < 20; turn += 1) {
    expect(await keys.find(id)).toMatchObject({ accountId: "a1" });
    clock.advance(LIMITS.keysAskMs);
    await keys.refresh();
  }
  expect(store.keyReads).toBe(1);
});

test("a revocation, wherever it was made, is seen with the next question", async () => {
  const { store, keys } = await stand();
  await keys.find(id);
  await store.accounts.keyRevoke({ publicId: id, at: 5 });
  await keys.refresh();
  expect(await keys.find(id)).toMatchObject({ revokedAt: 5 });
});

test("without an answer for a second no remembered key is believed, and with one again", async () => {
  const { store, clock, keys } = await stand();
  await keys.find(id);
  store.down = true;
  clock.advance(LIMITS.keysBelievedMs - 1);
  await keys.refresh();
  expect(await keys.find(id)).toMatchObject({ accountId: "a1" });
  clock.advance(1);
  expect(await keys.find(id)).toBeInstanceOf(StoreDown);
  store.down = false;
  expect([await keys.find(id), store.keyReads]).toMatchObject([{ accountId: "a1" }, 3]);
  await keys.refresh();
  await keys.find(id);
  expect(store.keyReads).toBe(3);
});

test("what was looked up before a revocation is not remembered after it", async () => {
  const { store, keys } = await stand();
  const { keyByPublicId } = store.accounts;
  const { promise, resolve } = Promise.withResolvers<void>();
  store.accounts.keyByPublicId = async (publicId) => {
    const record = await keyByPublicId(publicId);
    await promise;
    return record;
  };
  const slow = keys.find(id);
  await store.accounts.keyRevoke({ publicId: id, at: 5 });
  await keys.refresh();
  resolve();
  expect(await slow).toMatchObject({ revokedAt: undefined });
  expect(await keys.find(id)).toMatchObject({ revokedAt: 5 });
});

test("a late answer to an older question does not bring back a record from before a revocation", async () => {
  const { store, clock, keys } = await stand();
  const { keyByPublicId, keysRevision } = store.accounts;
  const [record, revision] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  store.accounts.keyByPublicId = async (publicId) => {
    const found = await keyByPublicId(publicId);
    await record.promise;
    return found;
  };
  store.accounts.keysRevision = async () => {
    const found = await keysRevision();
    await revision.promise;
    return found;
  };
  const [reading, older] = [keys.find(id), keys.refresh()];
  await Bun.sleep(0);
  store.accounts.keyByPublicId = keyByPublicId;
  store.accounts.keysRevision = keysRevision;
  await store.accounts.keyRevoke({ publicId: id, at: 5 });
  clock.advance(1);
  await keys.refresh();
  revision.resolve();
  await older;
  record.resolve();
  await reading;
  expect(await keys.find(id)).toMatchObject({ revokedAt: 5 });
});

test("when keys were used is told to the store now and then, not with every request, and not lost when it is down", async () => {
  const { store, clock, keys } = await stand();
  for (let turn = 0; turn < 5; turn += 1) {
    clock.advance(1_000);
    keys.used(id);
  }
  expect(await store.accounts.keyByPublicId(id)).toMatchObject({ lastUsedAt: undefined });
  store.down = true;
  await keys.flush();
  store.down = false;
  await keys.flush();
  const at = Math.floor(clock.unixMs() / 1000);
  expect(await store.accounts.keyByPublicId(id)).toMatchObject({ lastUsedAt: at });
});

test("a key that the store does not know, or that is revoked, is not looked up again for a while", async () => {
  const { store, clock, keys } = await stand();
  const unknown = "u".repeat(12);
  for (let turn = 0; turn < 1_000; turn += 1) expect(await keys.find(unknown)).toBeUndefined();
  expect(store.keyReads).toBe(1);
  await store.accounts.keyRevoke({ publicId: id, at: 5 });
  for (let turn = 0; turn < 1_000; turn += 1) expect(await keys.find(id)).toMatchObject({ revokedAt: 5 });
  expect(store.keyReads).toBe(2);
  clock.advance(LIMITS.keysRefusedMs);
  await keys.find(unknown);
  expect(store.keyReads).toBe(3);
});

test("a key counts as proven once it was found valid, over revocations of others and over a restart, until it is revoked", async () => {
  const { store, clock, keys } = await stand();
  const other = "o".repeat(12);
  await store.accounts.keyAdd({ ...key, publicId: other });
  expect([keys.isFree(id), keys.isFree(other)]).toEqual([false, false]);
  await Promise.all([keys.find(id), keys.find(other)]);
  await store.accounts.keyRevoke({ publicId: other, at: 5 });
  await keys.refresh();
  await keys.find(other);
  expect([keys.isFree(id), keys.isFree(other)]).toEqual([true, false]);
  const restarted = new Keys(store.accounts, clock);
  await restarted.recall();
  expect([restarted.isFree(id), restarted.isFree(other)]).toEqual([true, false]);
});
