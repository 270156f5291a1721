/** The store in a folder: its files and their modes, its threads, its lock, and what a disk does to it. */
import { test as alone, expect } from "bun:test";
import { chmod, copyFile, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testRequirement } from "../../../src/config/environment.ts";
import { openStore } from "../../../src/service/store.ts";
import { Problem } from "../../../src/std/problem.ts";
import { lookAtDatabase } from "../../../src/store/sqlite/store.ts";
import { funded } from "../../account/fake-store.ts";
import { place, storeTest, usable } from "../engines.ts";
import { addAccount } from "../rows.ts";
import { temporaryFolder } from "../temporary.ts";

const test = storeTest("SQLite");

/** Opens a folder as `serve` does. */
function opening(dataDir: string) {
  return openStore({ dataDir, databaseUrl: undefined }, "serve");
}

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test("many writes at once all happen, and what waits at the end is kept", async (store, at) => {
  const adds = Array.from({ length: 200 }, (_, i) => store.accounts.accountAdd(funded(`a${i}`, `e${i}`)));
  const closing = store.close();
  expect(new Set(await Promise.all(adds))).toEqual(new Set(["added"]));
  await closing;
  const again = await at.open();
  expect(await again.accounts.accountByEmail("e199")).toMatchObject({ id: "a199", email: "e199" });
});

alone("a database that another process is just making is waited for", async () => {
  await using at = await place("SQLite");
  const maker = `
    const { Database } = require("bun:sqlite");
    const db = new Database(${JSON.stringify(join(at.dir, "tendon.sqlite"))}, { create: true, readwrite: true });
    db.run("BEGIN IMMEDIATE");
    console.log("begun");
    setTimeout(() => db.run("COMMIT"), 200);`;
  const child = Bun.spawn([process.execPath, "-e", maker], { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("begun\n");
  await addAccount(await at.open());
  expect(await child.exited).toBe(0);
});

const strace = Bun.which("strace");

// Without strace no disk fails; `.ci/run` installs it.
alone.skipIf(strace === null && testRequirement() === "none")(
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
    const again = usable(await opening(dir.path));
    expect([await again.ping(), await again.accounts.accountAdd(funded("a4", "a4"))]).toEqual([undefined, "added"]);
    await again.close();
  },
);

test("what a killed server left in its log is in the database, synced, before the next one believes it", async (store, at) => {
  await using copy = await temporaryFolder();
  await addAccount(store);
  for (const name of ["tendon.sqlite", "tendon.sqlite-wal"]) await copyFile(join(at.dir, name), join(copy.path, name));
  const next = usable(await opening(copy.path));
  expect((await stat(join(copy.path, "tendon.sqlite-wal"))).size).toBe(0);
  expect(await next.accounts.accountById("a1")).toMatchObject({ email: "a1@example.org" });
  await next.close();
});

test("a store that is closed leaves one database file: its log is copied in and gone", async (store, at) => {
  await addAccount(store);
  await store.accounts.accountById("a1");
  await store.close();
  expect((await readdir(at.dir)).filter((name) => name.startsWith("tendon.sqlite"))).toEqual(["tendon.sqlite"]);
});

test("under load without a pause the log is copied into the database long before the writer would do it itself", async (store, at) => {
  const path = join(at.dir, "tendon.sqlite");
  const { size } = await stat(path);
  let writes = 0;
  // Some five pages each: far from the ten thousand of the writer's own bound.
  while ((await stat(path)).size === size && writes < 1_000) {
    writes += 1;
    await store.accounts.accountAdd(funded(`a${writes}`, `e${writes}`));
  }
  expect([writes < 1_000, (await stat(`${path}-wal`)).size < 10_000 * 4_096]).toEqual([true, true]);
});

alone(
  "the data folder is 0700 and its files 0600, also one that was open; one with other files is refused",
  async () => {
    await using dir = await temporaryFolder();
    const [made, open, other] = ["nested/made", "open", "other"].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ];
    for (const folder of [open, other]) {
      await mkdir(folder);
      await chmod(folder, 0o755);
    }
    for (const folder of [made, open]) {
      const store = usable(await opening(folder));
      await addAccount(store);
      expect(await modeOf(folder)).toBe(0o700);
      for (const name of await readdir(folder)) expect([name, await modeOf(join(folder, name))]).toEqual([name, 0o600]);
      await store.close();
    }
    await writeFile(join(other, "thesis.txt"), "");
    expect(await opening(other)).toMatchObject({ exit: 2 });
  },
);

test("one server per data folder: the second exits with 2 and names the first's process", async (store, at) => {
  const second = await opening(at.dir);
  expect(second).toMatchObject({ exit: 2, message: expect.stringContaining(`process ${process.pid}`) });
  await store.close();
  await at.open();
});

alone("the lock of a killed process is free again", async () => {
  await using at = await place("SQLite");
  const source = `
    const { openStore } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/service/store.ts"))});
    await openStore({ dataDir: ${JSON.stringify(at.dir)} }, "serve");
    console.log("open");
    await new Promise(() => setInterval(() => {}, 1000));
  `;
  const holder = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "inherit" });
  await holder.stdout.getReader().read();
  expect(await opening(at.dir)).toMatchObject({ exit: 2, message: expect.stringContaining(`${holder.pid}`) });
  holder.kill("SIGKILL");
  await holder.exited;
  await at.open();
});

alone("a file that is no database is a problem, not a crash", async () => {
  await using dir = await temporaryFolder();
  await writeFile(join(dir.path, "tendon.sqlite"), "garbage, and rather a lot of it".repeat(100));
  const unreadable = { message: expect.stringContaining("tendon.sqlite cannot be read") };
  expect(lookAtDatabase(dir.path)).toMatchObject(unreadable);
  expect(await opening(dir.path)).toMatchObject({ exit: 1 });
});

test("a look at the database sees whether it is whole, also while it is in use, and leaves nothing behind", async (store, at) => {
  await using empty = await temporaryFolder();
  expect(lookAtDatabase(empty.path)).toBe("absent");
  await addAccount(store);
  expect(lookAtDatabase(at.dir)).toBe("whole");
  await store.close();
  const before = await readdir(at.dir);
  expect(lookAtDatabase(at.dir)).toBe("whole");
  expect(await readdir(at.dir)).toEqual(before);
  // A page in the middle is lost.
  const path = join(at.dir, "tendon.sqlite");
  const bytes = await Bun.file(path).bytes();
  await Bun.write(path, bytes.fill(0xa5, 4096, 8192));
  expect(lookAtDatabase(at.dir)).toBeInstanceOf(Problem);
});
