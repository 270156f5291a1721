import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Problem } from "../../src/error.ts";
import { lookAtDatabase } from "../../src/store/look.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { type KeyRecord, type Store, StoreDown } from "../../src/store/store.ts";
import { temporaryFolder } from "./temporary.ts";

async function opened(dir: string): Promise<Store> {
  const store = await openSqliteStore(dir);
  if (store instanceof Problem) throw new Error(store.message);
  return store;
}

function key(fields: Partial<KeyRecord>): KeyRecord {
  const sha256 = new Uint8Array(32).fill(7);
  return { publicId: "p".repeat(12), sha256, accountId: "a1", name: "n", createdAt: 5, revokedAt: null, ...fields };
}

const account = { id: "a1", email: "one@example.org", createdAt: 4 };

test("accounts and keys are kept over a restart", async () => {
  await using dir = await temporaryFolder();
  const first = await opened(dir.path);
  expect(await first.accountAdd(account)).toBe("added");
  expect(await first.keyAdd(key({}))).toBe("added");
  await first.close();
  const second = await opened(dir.path);
  expect(await second.accountByEmail("one@example.org")).toEqual(account);
  expect(await second.keyByPublicId("p".repeat(12))).toEqual(key({}));
  await second.close();
});

test("what a caller may get wrong is an answer, not an error", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  expect(await store.keyAdd(key({}))).toBe("account_unknown");
  await store.accountAdd(account);
  expect(await store.accountAdd({ ...account, id: "a2" })).toBe("email_taken");
  await store.keyAdd(key({}));
  expect(await store.keyAdd(key({ name: "again" }))).toBe("id_taken");
  expect(await store.keyRevoke({ publicId: "none", revokedAt: 9 })).toBe("unknown");
  expect(await store.accountByEmail("nobody@example.org")).toBeUndefined();
  expect(await store.keyByPublicId("none")).toBeUndefined();
  await store.close();
});

test("a key stays revoked at the moment of its first revocation", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  await store.accountAdd(account);
  await store.keyAdd(key({}));
  await store.keyRevoke({ publicId: "p".repeat(12), revokedAt: 9 });
  await store.keyRevoke({ publicId: "p".repeat(12), revokedAt: 99 });
  expect(await store.keyByPublicId("p".repeat(12))).toEqual(key({ revokedAt: 9 }));
  await store.close();
});

test("many writes at once all happen, and what waits at the end is kept", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const adds = Array.from({ length: 200 }, (_, i) => store.accountAdd({ id: `a${i}`, email: `e${i}`, createdAt: i }));
  const closing = store.close();
  expect(new Set(await Promise.all(adds))).toEqual(new Set(["added"]));
  await closing;
  const again = await opened(dir.path);
  expect(await again.accountByEmail("e199")).toEqual({ id: "a199", email: "e199", createdAt: 199 });
  await again.close();
});

test("a closed store answers StoreDown", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  expect(await store.ping()).toBeUndefined();
  await store.close();
  expect(await store.ping()).toBeInstanceOf(StoreDown);
  expect(await store.accountAdd(account)).toBeInstanceOf(StoreDown);
  expect(await store.keyByPublicId("x")).toBeInstanceOf(StoreDown);
});

test("the data folder is 0700 and its files 0600", async () => {
  await using dir = await temporaryFolder();
  const data = join(dir.path, "nested", "data");
  const store = await opened(data);
  await store.accountAdd(account);
  expect((await stat(data)).mode & 0o777).toBe(0o700);
  for (const name of await readdir(data)) {
    expect([name, (await stat(join(data, name))).mode & 0o777]).toEqual([name, 0o600]);
  }
  await store.close();
});

test("an empty folder that others can read is tightened; one with other files is refused", async () => {
  await using dir = await temporaryFolder();
  const data = join(dir.path, "data");
  await mkdir(data);
  await chmod(data, 0o755);
  await (await opened(data)).close();
  expect((await stat(data)).mode & 0o777).toBe(0o700);
  const other = join(dir.path, "other");
  await mkdir(other);
  await chmod(other, 0o755);
  await writeFile(join(other, "thesis.txt"), "");
  expect(await openSqliteStore(other)).toMatchObject({ exit: 2 });
});

test("one server per data folder: the second exits with 2 and names the first's process", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const second = await openSqliteStore(dir.path);
  expect(second).toMatchObject({ exit: 2, message: expect.stringContaining(`process ${process.pid}`) });
  await store.close();
  await (await opened(dir.path)).close();
});

test("the lock of a killed process is free again", async () => {
  await using dir = await temporaryFolder();
  const source = `
    const { openSqliteStore } = await import(${JSON.stringify(join(import.meta.dir, "../../src/store/sqlite.ts"))});
    await openSqliteStore(${JSON.stringify(dir.path)});
    console.log("open");
    await new Promise(() => setInterval(() => {}, 1000));
  `;
  const holder = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  await holder.stdout.getReader().read();
  expect(await openSqliteStore(dir.path)).toMatchObject({ exit: 2, message: expect.stringContaining(`${holder.pid}`) });
  holder.kill("SIGKILL");
  await holder.exited;
  await (await opened(dir.path)).close();
});

test("a folder written by a newer version is refused", async () => {
  await using dir = await temporaryFolder();
  await (await opened(dir.path)).close();
  const db = new Database(join(dir.path, "tendon.sqlite"));
  db.run("PRAGMA user_version = 999");
  db.close();
  expect(await openSqliteStore(dir.path)).toMatchObject({ exit: 1, message: expect.stringContaining("newer") });
  expect(lookAtDatabase(dir.path)).toMatchObject({ message: expect.stringContaining("newer") });
});

test("a file that is no database is a problem, not a crash", async () => {
  await using dir = await temporaryFolder();
  await writeFile(join(dir.path, "tendon.sqlite"), "garbage, and rather a lot of it".repeat(100));
  expect(lookAtDatabase(dir.path)).toMatchObject({ message: expect.stringContaining("tendon.sqlite cannot be read") });
  expect(await openSqliteStore(dir.path)).toMatchObject({ exit: 1 });
});

test("a look at the database sees whether it is whole, also while it is in use, and leaves nothing behind", async () => {
  await using dir = await temporaryFolder();
  expect(lookAtDatabase(dir.path)).toBe("absent");
  const store = await opened(dir.path);
  await store.accountAdd(account);
  expect(lookAtDatabase(dir.path)).toBe("whole");
  await store.close();
  const before = await readdir(dir.path);
  expect(lookAtDatabase(dir.path)).toBe("whole");
  expect(await readdir(dir.path)).toEqual(before);
  // A page in the middle is lost.
  const path = join(dir.path, "tendon.sqlite");
  const bytes = await Bun.file(path).bytes();
  await Bun.write(path, bytes.fill(0xa5, 4096, 8192));
  expect(lookAtDatabase(dir.path)).toBeInstanceOf(Problem);
});
