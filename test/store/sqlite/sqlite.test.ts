import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmod, copyFile, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testRequirement } from "../../../src/config/environment.ts";
import type { Store } from "../../../src/service/domains.ts";
import { openStore } from "../../../src/service/store.ts";
import { Problem } from "../../../src/std/problem.ts";
import { lookAtDatabase } from "../../../src/store/sqlite/store.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { funded } from "../../account/fake-store.ts";
import { temporaryFolder } from "../temporary.ts";

/** As `serve` opens it. */
function opening(dataDir: string) {
  return openStore({ dataDir, databaseUrl: undefined }, "serve");
}

async function opened(dir: string): Promise<Store> {
  const store = await opening(dir);
  if (store instanceof Problem) throw new Error(store.message);
  return store;
}

const account = funded("a1", "one@example.org");

test("many writes at once all happen, and what waits at the end is kept", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const adds = Array.from({ length: 200 }, (_, i) => store.accounts.accountAdd(funded(`a${i}`, `e${i}`)));
  const closing = store.close();
  expect(new Set(await Promise.all(adds))).toEqual(new Set(["added"]));
  await closing;
  const again = await opened(dir.path);
  expect(await again.accounts.accountByEmail("e199")).toMatchObject({ id: "a199", email: "e199" });
  await again.close();
});

test("a database that another process is just making is waited for", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.sqlite");
  const maker = `
    const { Database } = require("bun:sqlite");
    const db = new Database(${JSON.stringify(path)}, { create: true, readwrite: true });
    db.run("BEGIN IMMEDIATE");
    console.log("begun");
    setTimeout(() => db.run("COMMIT"), 200);`;
  const child = Bun.spawn([process.execPath, "-e", maker], { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("begun\n");
  const store = await opened(dir.path);
  expect(await store.accounts.accountAdd(account)).toBe("added");
  await store.close();
  expect(await child.exited).toBe(0);
});

const strace = Bun.which("strace");

// Without strace no disk fails; `.ci/run` installs it.
test.skipIf(strace === null && testRequirement() === "none")(
  "after a sync of the log that failed nothing is believed any more, also once syncs work again, until the next start",
  async () => {
    await using dir = await temporaryFolder();
    const child = `
      const { openStore } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/service/store.ts"))});
      const { funded } = await import(${JSON.stringify(join(import.meta.dir, "../../account/fake-store.ts"))});
      const store = await openStore({ dataDir: ${JSON.stringify(dir.path)} }, "serve");
      const add = (id) => store.accounts.accountAdd(funded(id, id));
      const first = add("a1");
      const waited = await Promise.all([first, add("a2"), store.ping()]);
      const later = [await add("a3"), await store.accounts.keysOf("a1"), await store.ping()];
      console.log(JSON.stringify({ waited, later }));
      await store.close();
      console.log("closed");`;
    // Each thread's first fdatasync fails. SQLite's own syncs are fsync.
    const fault = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=1"];
    const tracer = [strace ?? "strace", "-f", "-qq", "-o", "/dev/null", ...fault];
    const traced = Bun.spawn([...tracer, process.execPath, "-e", child], { stdout: "pipe", stderr: "inherit" });
    const [line = "", closed] = (await new Response(traced.stdout).text()).split("\n");
    const down = { reason: expect.stringMatching(/sync of the log of .*tendon\.sqlite failed.*EIO.*restart tendon/) };
    const { waited, later } = JSON.parse(line);
    expect(waited.slice(0, 2)).toEqual([
      { ...down, outcomeUnknown: true },
      { ...down, outcomeUnknown: true },
    ]);
    expect(later).toEqual(Array(3).fill({ ...down, outcomeUnknown: false }));
    expect([closed, await traced.exited]).toEqual(["closed", 0]);
    const again = await opened(dir.path);
    expect([await again.ping(), await again.accounts.accountAdd(funded("a4", "a4"))]).toEqual([undefined, "added"]);
    await again.close();
  },
);

test("what a killed server left in its log is in the database, synced, before the next one believes it", async () => {
  await using dir = await temporaryFolder();
  await using copy = await temporaryFolder();
  const store = await opened(dir.path);
  await store.accounts.accountAdd(account);
  for (const name of ["tendon.sqlite", "tendon.sqlite-wal"]) {
    await copyFile(join(dir.path, name), join(copy.path, name));
  }
  await store.close();
  const next = await opened(copy.path);
  expect((await stat(join(copy.path, "tendon.sqlite-wal"))).size).toBe(0);
  expect(await next.accounts.accountById("a1")).toMatchObject({ email: "one@example.org" });
  await next.close();
});

test("a closed store answers StoreDown", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  expect(await store.ping()).toBeUndefined();
  await store.close();
  expect(await store.ping()).toBeInstanceOf(StoreDown);
  expect(await store.accounts.accountAdd(account)).toBeInstanceOf(StoreDown);
  expect(await store.accounts.keyByPublicId("x")).toBeInstanceOf(StoreDown);
});

test("a store that is closed leaves one database file: its log is copied in and gone", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  await store.accounts.accountAdd(account);
  await store.accounts.accountByEmail("one@example.org");
  await store.close();
  expect((await readdir(dir.path)).filter((name) => name.startsWith("tendon.sqlite"))).toEqual(["tendon.sqlite"]);
});

test("under load without a pause the log is copied into the database long before the writer would do it itself", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const path = join(dir.path, "tendon.sqlite");
  const { size } = await stat(path);
  let writes = 0;
  // Some five pages each: far from the ten thousand of the writer's own bound.
  while ((await stat(path)).size === size && writes < 1_000) {
    writes += 1;
    await store.accounts.accountAdd(funded(`a${writes}`, `e${writes}`));
  }
  expect([writes < 1_000, (await stat(`${path}-wal`)).size < 10_000 * 4_096]).toEqual([true, true]);
  await store.close();
});

test("the data folder is 0700 and its files 0600", async () => {
  await using dir = await temporaryFolder();
  const data = join(dir.path, "nested", "data");
  const store = await opened(data);
  await store.accounts.accountAdd(account);
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
  expect(await opening(other)).toMatchObject({ exit: 2 });
});

test("one server per data folder: the second exits with 2 and names the first's process", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const second = await opening(dir.path);
  expect(second).toMatchObject({ exit: 2, message: expect.stringContaining(`process ${process.pid}`) });
  await store.close();
  await (await opened(dir.path)).close();
});

test("the lock of a killed process is free again", async () => {
  await using dir = await temporaryFolder();
  const source = `
    const { openStore } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/service/store.ts"))});
    await openStore({ dataDir: ${JSON.stringify(dir.path)} }, "serve");
    console.log("open");
    await new Promise(() => setInterval(() => {}, 1000));
  `;
  const holder = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  await holder.stdout.getReader().read();
  expect(await opening(dir.path)).toMatchObject({ exit: 2, message: expect.stringContaining(`${holder.pid}`) });
  holder.kill("SIGKILL");
  await holder.exited;
  await (await opened(dir.path)).close();
});

test("a folder written by a newer version is refused", async () => {
  await using dir = await temporaryFolder();
  await (await opened(dir.path)).close();
  const db = new Database(join(dir.path, "tendon.sqlite"));
  db.run("UPDATE tendon_versions SET version = 999");
  db.close();
  expect(await opening(dir.path)).toMatchObject({ exit: 1, message: expect.stringContaining("newer") });
  expect(lookAtDatabase(dir.path)).toMatchObject({ message: expect.stringContaining("newer") });
});

test("a file that is no database is a problem, not a crash", async () => {
  await using dir = await temporaryFolder();
  await writeFile(join(dir.path, "tendon.sqlite"), "garbage, and rather a lot of it".repeat(100));
  expect(lookAtDatabase(dir.path)).toMatchObject({
    message: expect.stringContaining("tendon.sqlite cannot be read"),
  });
  expect(await opening(dir.path)).toMatchObject({ exit: 1 });
});

test("a look at the database sees whether it is whole, also while it is in use, and leaves nothing behind", async () => {
  await using dir = await temporaryFolder();
  expect(lookAtDatabase(dir.path)).toBe("absent");
  const store = await opened(dir.path);
  await store.accounts.accountAdd(account);
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
