/** What is particular to blobs in a folder: mounts among its folders, names that are not ours, folders that must outlive a loss of power. */
import { expect, test } from "bun:test";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Folders } from "../../../src/runs/blob/disk.ts";
import { blobPath, folderBackend } from "../../../src/runs/blob/folder.ts";
import { temporaryFolder } from "../../store/temporary.ts";
import { begun, blobId, nonce, random, reason, sent, staged, stored, withBlobs } from "./bytes.ts";

withBlobs();

const privileged = process.getuid?.() === 0;

for (const name of ["staging", "parts", "blobs"]) {
  test.skipIf(!privileged)(`a mount at ${name} is found at the start`, async () => {
    await using dir = await temporaryFolder();
    const mounted = join(dir.path, name);
    const staging = join(dir.path, "staging");
    for (const one of [staging, mounted]) await mkdir(one, { recursive: true });
    await folderBackend(dir.path, nonce, staging).check();
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=1m", "none", mounted]).exitCode).toBe(0);
    try {
      expect(await reason(folderBackend(dir.path, nonce, staging).check())).toContain("are not on one mount");
      for (const one of ["staging", "parts", "blobs"]) expect(await readdir(join(dir.path, one))).toEqual([]);
    } finally {
      Bun.spawnSync(["umount", "-l", mounted]);
    }
  });
}

test("the list has only blobs, whatever else lies there", async () => {
  await using dir = await temporaryFolder();
  const backend = folderBackend(dir.path, nonce);
  await backend.check();
  await backend.mark("", "store_1 gen_1");
  const blob = await stored(backend, random(3));
  const to = await begun(backend);
  await sent(backend, to, 1, random(4));
  for (const one of ["lost+found", "snapshots", "parts/.snapshot"]) {
    await mkdir(join(dir.path, one.startsWith("parts") ? one : `blobs/${one}`), { recursive: true });
  }
  await writeFile(join(dir.path, "blobs/ab"), "a file with the name of a folder");
  await writeFile(join(dir.path, "parts/README"), "");
  await writeFile(`${blobPath(dir.path, blob)}.bak`, "");
  await writeFile(join(blobPath(dir.path, blob), "../.nfs0001"), "");
  const ids: string[] = [];
  for (let after: string | undefined = "0"; after !== undefined; ) {
    const page: Awaited<ReturnType<typeof backend.list>> = await backend.list(after === "0" ? undefined : after);
    ids.push(...page.blobs.map(({ id }) => id));
    after = page.next;
  }
  expect(ids.sort()).toEqual([blob, to.id].sort());
});

test("of two who need a new folder none goes on before it is synced, and one that failed is tried again", async () => {
  const makings: { path: string; done: PromiseWithResolvers<void> }[] = [];
  const folders = new Folders((path) => {
    const done = Promise.withResolvers<void>();
    makings.push({ path, done });
    return done.promise;
  });
  const went: string[] = [];
  const first = folders.made("/blobs/aa").then(() => went.push("first"));
  const second = folders.made("/blobs/aa").then(() => went.push("second"));
  await Bun.sleep(0);
  expect([went, makings.length]).toEqual([[], 1]);
  makings[0]?.done.resolve();
  await Promise.all([first, second]);
  expect(went).toEqual(["first", "second"]);
  const third = folders.made("/blobs/bb");
  makings[1]?.done.reject(new Error("the disk"));
  expect(await reason(third)).toBe("the disk");
  const fourth = folders.made("/blobs/bb");
  expect(makings.map(({ path }) => path)).toEqual(["/blobs/aa", "/blobs/bb", "/blobs/bb"]);
  makings[2]?.done.resolve();
  await fourth;
});

test("a folder that was removed meanwhile is made again", async () => {
  await using dir = await temporaryFolder();
  const backend = folderBackend(dir.path, nonce);
  await backend.check();
  const name = blobId();
  await backend.put(await staged(random(1)), name);
  Bun.spawnSync(["rm", "-r", join(dir.path, "blobs")]);
  await backend.put(await staged(random(2)), name);
  expect((await readFile(blobPath(dir.path, name))).length).toBe(2);
});

test("a folder that is a file cannot be used", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "file");
  await Bun.write(path, "");
  await reason(folderBackend(path, nonce).check());
});
