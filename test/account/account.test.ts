import { expect, test } from "bun:test";
import { chmod, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { authenticate } from "../../src/account/authenticate.ts";
import { readCredentials, removeCredentials, writeCredentials } from "../../src/account/credentials.ts";
import { type DevAccount, devAccount, saveDevCredentials } from "../../src/account/dev.ts";
import { keyPublicId, newKey } from "../../src/account/key.ts";
import { Keys } from "../../src/account/keys.ts";
import { Problem } from "../../src/std/problem.ts";
import { StoreDown } from "../../src/store/store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { type FakeStore, fakeStore } from "./fake-store.ts";

function keysOf(store: FakeStore): Keys {
  return new Keys(store.accounts, new FakeClock());
}

async function made(store: FakeStore, dir: string): Promise<DevAccount> {
  const dev = await devAccount(store, dir, new FakeClock());
  if (dev instanceof Problem) throw new Error(dev.message);
  return dev;
}

test("a missing header gives missing_api_key; an unknown or revoked key gives invalid_api_key", async () => {
  await using dir = await temporaryFolder();
  const store = fakeStore();
  const { key, accountId } = await made(store, dir.path);
  expect(await authenticate(`Bearer ${key}`, keysOf(store))).toEqual({ accountId, keyPublicId: key.slice(4, 16) });
  expect(await authenticate(`bearer  ${key} `, keysOf(store))).toMatchObject({ accountId });
  for (const header of [null, "", "Bearer", "Bearer ", `Basic ${key}`, key]) {
    expect([header, await authenticate(header, keysOf(store))]).toMatchObject([header, { code: "missing_api_key" }]);
  }
  for (const header of [`Bearer ${newKey(0).key}`, "Bearer x", `Bearer ${key}x`, `Bearer ${key} ${key}`]) {
    expect([header, await authenticate(header, keysOf(store))]).toMatchObject([header, { code: "invalid_api_key" }]);
  }
  await store.accounts.keyRevoke({ publicId: keyPublicId(key) ?? "", at: 1 });
  expect(await authenticate(`Bearer ${key}`, keysOf(store))).toMatchObject({ code: "invalid_api_key" });
});

test("a bad checksum is refused without a look-up", async () => {
  const store = fakeStore();
  const key = newKey(0).key;
  await authenticate(`Bearer ${key.slice(0, -1)}${key.endsWith("x") ? "y" : "x"}`, keysOf(store));
  expect(store.keyReads).toBe(0);
  await authenticate(`Bearer ${newKey(0).key}`, keysOf(store));
  expect(store.keyReads).toBe(1);
});

test("key verification down is auth_unavailable", async () => {
  const store = fakeStore();
  store.down = true;
  expect(await authenticate(`Bearer ${newKey(0).key}`, keysOf(store))).toMatchObject({
    code: "auth_unavailable",
    status: 503,
    detail: "store: switched off by the test",
  });
});

test("--dev makes account and key once and says the same key at each start", async () => {
  await using dir = await temporaryFolder();
  const store = fakeStore();
  const first = await made(store, dir.path);
  expect(await made(store, dir.path)).toEqual(first);
  expect((await stat(join(dir.path, "dev-key"))).mode & 0o777).toBe(0o600);
  expect(await store.accounts.accountByEmail("dev@localhost")).toMatchObject({ id: first.accountId });
});

test("--dev pays the credit in once, and makes another key for the same account when its own is revoked", async () => {
  await using dir = await temporaryFolder();
  const store = fakeStore();
  const { credit } = store.charges;
  store.charges.credit = async () => new StoreDown("disk full");
  expect(await devAccount(store, dir.path, new FakeClock())).toMatchObject({
    message: expect.stringContaining("disk full"),
  });
  store.charges.credit = credit;
  const first = await made(store, dir.path);
  await store.accounts.keyRevoke({ publicId: keyPublicId(first.key) ?? "", at: 1 });
  const second = await made(store, dir.path);
  expect([second.accountId, second.key === first.key]).toEqual([first.accountId, false]);
  expect(await store.accounts.accountById(first.accountId)).toMatchObject({ credits: 100_000_000_000n });
});

test("--dev keeps its key when the store cannot verify it", async () => {
  await using dir = await temporaryFolder();
  const store = fakeStore();
  const first = await made(store, dir.path);
  // The look-up fails once; that must not replace the valid key by a new one.
  const { keyByPublicId } = store.accounts;
  store.accounts.keyByPublicId = async () => new StoreDown("disk full");
  expect(await devAccount(store, dir.path, new FakeClock())).toMatchObject({
    message: expect.stringContaining("disk full"),
  });
  store.accounts.keyByPublicId = keyByPublicId;
  expect(await made(store, dir.path)).toEqual(first);
});

test("the dev key is saved in the credentials file only if that holds none; both are closed to others", async () => {
  await using dir = await temporaryFolder();
  const folder = join(dir.path, "tendon");
  const path = join(folder, "credentials.json");
  await mkdir(folder);
  await chmod(folder, 0o755);
  expect(await saveDevCredentials(path, "key-1", "http://127.0.0.1:1")).toBeUndefined();
  expect([(await stat(path)).mode & 0o777, (await stat(folder)).mode & 0o777]).toEqual([0o600, 0o700]);
  await saveDevCredentials(path, "key-2", "http://127.0.0.1:2");
  expect(await readCredentials(path)).toEqual({ api_key: "key-1", base_url: "http://127.0.0.1:1" });
  await saveDevCredentials(path, "key-1", "http://127.0.0.1:3");
  expect(await readCredentials(path)).toEqual({ api_key: "key-1", base_url: "http://127.0.0.1:3" });
});

test("a damaged credentials file is a problem that says what to do, and is left alone", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "credentials.json");
  expect(await readCredentials(path)).toBeUndefined();
  for (const damaged of ["{", "{}", '{"api_key":5}']) {
    await writeFile(path, damaged, { mode: 0o600 });
    expect(await readCredentials(path)).toMatchObject({ message: expect.stringContaining("remove it") });
    expect(await saveDevCredentials(path, "key", "http://127.0.0.1:1")).toBeInstanceOf(Problem);
    expect(await readFile(path, "utf8")).toBe(damaged);
  }
  expect(await writeCredentials(join(path, "below-a-file"), { api_key: "a", base_url: "b" })).toBeInstanceOf(Problem);
});

test("a credentials file that others can read is refused, with the chmod that mends it", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "credentials.json");
  await writeCredentials(path, { api_key: "secret-of-the-file" });
  for (const mode of [0o640, 0o604, 0o620, 0o601]) {
    await chmod(path, mode);
    const refused = await readCredentials(path);
    expect([mode, refused]).toMatchObject([mode, { message: expect.stringContaining(`chmod 600 ${path}`) }]);
    expect(refused).not.toMatchObject({ message: expect.stringContaining("secret-of-the-file") });
  }
  // `serve --dev` does not write over it either.
  expect(await saveDevCredentials(path, "key", "http://127.0.0.1:1")).toBeInstanceOf(Problem);
  await chmod(path, 0o600);
  expect(await readCredentials(path)).toEqual({ api_key: "secret-of-the-file" });
});

test("a credentials file of another user, or one that is no regular file, is refused", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "credentials.json");
  await writeCredentials(path, { api_key: "a" });
  const { uid } = await stat(path);
  expect(await readCredentials(path, uid + 1)).toMatchObject({ message: expect.stringContaining(`chown ${uid + 1}`) });
  const [folder, pipe, link] = [join(dir.path, "folder"), join(dir.path, "pipe"), join(dir.path, "link")];
  await mkdir(folder, { mode: 0o700 });
  expect(Bun.spawnSync(["mkfifo", "-m", "600", pipe]).exitCode).toBe(0);
  for (const odd of [folder, pipe, "/dev/null"]) {
    expect(await readCredentials(odd)).toMatchObject({ message: expect.stringContaining("not a regular file") });
  }
  // The checks apply to the target of a link.
  await symlink(path, link);
  expect(await readCredentials(link)).toEqual({ api_key: "a" });
  await chmod(path, 0o644);
  expect(await readCredentials(link)).toBeInstanceOf(Problem);
});

test("credentials that are removed are gone, and removing them again is no problem", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "credentials.json");
  await writeCredentials(path, { api_key: "a" });
  for (const _time of [1, 2]) expect(await removeCredentials(path)).toBeUndefined();
  expect(await readCredentials(path)).toBeUndefined();
  expect(await removeCredentials(dir.path)).toBeInstanceOf(Problem);
});
