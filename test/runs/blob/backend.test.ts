/** What holds for both stores of bytes. */
import { expect } from "bun:test";
import { join } from "node:path";
import type { Backend } from "../../../src/runs/blob/backend.ts";
import {
  begun,
  blobId,
  bytesOf,
  dir,
  onBackends,
  random,
  reason,
  sent,
  sha256,
  staged,
  stored,
  withBlobs,
} from "./bytes.ts";

const MiB = 2 ** 20;
/** S3 takes no smaller part that is not the last one. */
const PART_BYTES = 5 * MiB;

withBlobs();

async function listed(backend: Backend) {
  const blobs = [];
  let pages = 0;
  let after: string | undefined;
  do {
    const page = await backend.list(after);
    blobs.push(...page.blobs);
    pages += 1;
    after = page.next;
  } while (after !== undefined);
  return { blobs, pages };
}

onBackends((test, kind) => {
  test("a blob is read as it was put, whole and any range of it", async ({ backend }) => {
    const bytes = random(700_001);
    const blob = await stored(backend, bytes);
    const ranges = [
      [0, bytes.length],
      [0, 1],
      [bytes.length - 1, bytes.length],
      [262_143, 262_145],
      [1, bytes.length - 1],
      [5, 5],
      [bytes.length, bytes.length],
    ] as const;
    for (const [from, to] of ranges) expect(await bytesOf(backend, blob, from, to)).toEqual(bytes.slice(from, to));
  });

  test("a blob may have no bytes at all", async ({ backend }) => {
    const blob = await stored(backend, new Uint8Array());
    expect(await bytesOf(backend, blob, 0, 0)).toEqual(new Uint8Array());
    expect((await listed(backend)).blobs).toMatchObject([{ id: blob, size: 0 }]);
  });

  test("there is no blob before it was put", async ({ backend }) => {
    expect(await bytesOf(backend, blobId(), 0, 1)).toBeUndefined();
    expect(await bytesOf(backend, blobId(), 0, 0)).toBeUndefined();
  });

  test("a range past the end is no shorter answer, but a failure", async ({ backend }) => {
    const blob = await stored(backend, random(1000));
    await reason(bytesOf(backend, blob, 0, 1001));
  });

  test("a reader may leave at any time, and others still read", async ({ backend }) => {
    const bytes = random(3 * MiB);
    const blob = await stored(backend, bytes);
    await (await backend.read(blob, 0, bytes.length))?.[Symbol.asyncIterator]().return?.();
    for await (const piece of (await backend.read(blob, 0, bytes.length)) ?? []) {
      expect(piece).toEqual(bytes.slice(0, piece.length));
      break;
    }
    expect(await bytesOf(backend, blob, 0, bytes.length)).toEqual(bytes);
  });

  test("removing twice, and what never was, is no failure", async ({ backend }) => {
    const [gone, kept] = [await stored(backend, random(10)), await stored(backend, random(10))];
    await backend.remove([gone, blobId()]);
    await backend.remove([gone]);
    expect(await bytesOf(backend, gone, 0, 10)).toBeUndefined();
    expect(await bytesOf(backend, kept, 0, 10)).toHaveLength(10);
  });

  test("parts that come in any order join in the order of their numbers", async ({ backend }) => {
    const parts = [random(PART_BYTES), random(PART_BYTES), random(1)];
    const [first, second, third] = parts as [Uint8Array, Uint8Array, Uint8Array];
    const to = await begun(backend);
    const c = await sent(backend, to, 3, third);
    const a = await sent(backend, to, 1, first);
    const b = await sent(backend, to, 2, second);
    expect(await bytesOf(backend, to.id, 0, 1)).toBeUndefined();
    const size = 2 * PART_BYTES + 1;
    expect(await backend.join(to, [a, b, c])).toEqual({ size, sha256: sha256(...parts) });
    expect(await bytesOf(backend, to.id, PART_BYTES - 3, PART_BYTES + 3)).toEqual(
      new Uint8Array([...first.slice(-3), ...second.slice(0, 3)]),
    );
    expect(await bytesOf(backend, to.id, size - 1, size)).toEqual(third);
  });

  test("the same part again replaces it", async ({ backend }) => {
    const [old, fresh, last] = [random(PART_BYTES), random(PART_BYTES), random(7)];
    const to = await begun(backend);
    const outdated = await sent(backend, to, 1, old);
    const b = await sent(backend, to, 2, last);
    const a = await sent(backend, to, 1, fresh);
    expect(a.tag).not.toBe(outdated.tag);
    expect(await backend.join(to, [a, b])).toEqual({ size: PART_BYTES + 7, sha256: sha256(fresh, last) });
  });

  test("an outdated tag never joins other bytes than those that it was given for", async ({ backend }) => {
    const [old, fresh] = [random(20), random(20)];
    const to = await begun(backend);
    const outdated = await sent(backend, to, 1, old);
    await sent(backend, to, 1, fresh);
    const result = await backend.join(to, [outdated]);
    // A folder keeps what was replaced until the assembly is abandoned.
    expect(result).toEqual("changed" in result ? { changed: [1] } : { size: 20, sha256: sha256(old) });
  });

  test("a part that is not there is told, and the others stay", async ({ backend }) => {
    const [first, last] = [random(PART_BYTES), random(9)];
    const to = await begun(backend);
    const a = await sent(backend, to, 1, first);
    expect(await backend.join(to, [a, { part: 2, tag: "2-none", size: 9 }])).toEqual({ changed: [2] });
    const b = await sent(backend, to, 2, last);
    expect(await backend.join(to, [a, b])).toEqual({ size: PART_BYTES + 9, sha256: sha256(first, last) });
  });

  test("a join can be repeated, before the parts are removed and after", async ({ backend }) => {
    const bytes = random(100);
    const to = await begun(backend);
    const parts = [await sent(backend, to, 1, bytes)];
    const whole = { size: 100, sha256: sha256(bytes) };
    expect(await backend.join(to, parts)).toEqual(whole);
    expect(await backend.join(to, parts)).toEqual(whole);
    await backend.abandon(to);
    expect(await backend.join(to, parts)).toEqual(whole);
    expect(await bytesOf(backend, to.id, 0, 100)).toEqual(bytes);
  });

  test("an assembly can be abandoned twice, and without what begin said", async ({ backend }) => {
    for (const forget of [false, true]) {
      const to = await begun(backend);
      await sent(backend, to, 1, random(10));
      const told = forget ? { id: to.id, token: "" } : to;
      await backend.abandon(told);
      await backend.abandon(told);
      expect((await listed(backend)).blobs).toEqual([]);
      expect(await bytesOf(backend, to.id, 0, 1)).toBeUndefined();
    }
  });

  test("a lost assembly is a value, and another one with its id joins", async ({ backend }) => {
    const to = await begun(backend);
    const old = await sent(backend, to, 1, random(10));
    await backend.abandon(to);
    // A folder has no record of assemblies: it only lacks the part, and takes it again.
    const folder = kind === "folder";
    expect<unknown>(await backend.join(to, [old])).toEqual(folder ? { changed: [1] } : { lost: true });
    const put = await backend.putPart(await staged(random(10)), to, 1);
    expect<unknown>(put).toEqual(folder ? expect.any(String) : { lost: true });
    const bytes = random(10);
    const anew = { id: to.id, token: await backend.begin(to.id) };
    const fresh = await sent(backend, anew, 1, bytes);
    expect(await backend.join(anew, [fresh])).toEqual({ size: 10, sha256: sha256(bytes) });
  });

  test("the list has each blob once, on several pages, and the assemblies that were begun", async ({ backend }) => {
    const sizes = new Map<string, number>();
    for (let size = 0; size < 7; size += 1) sizes.set(await stored(backend, random(size)), size);
    const assemblies: string[] = [];
    for (let one = 0; one < 5; one += 1) {
      const to = await begun(backend);
      await sent(backend, to, 1, random(10));
      assemblies.push(to.id);
    }
    const { blobs, pages } = await listed(backend);
    expect(pages).toBeGreaterThan(1);
    expect(blobs.map((blob) => blob.id).sort()).toEqual([...sizes.keys(), ...assemblies].sort());
    for (const { id: one, size, at, begun } of blobs) {
      expect(begun).toBe(!sizes.has(one));
      if (sizes.has(one)) expect(size).toBe(sizes.get(one) ?? -1);
      // The clock of the store is that of this machine.
      expect(at).toBeWithin(Math.floor(Date.now() / 1000) - 3600, Math.floor(Date.now() / 1000) + 60);
    }
  });

  test("64 MiB are never in memory as a whole", async ({ options }) => {
    const script = join(import.meta.dir, "memory-child.ts");
    const child = Bun.spawn([process.execPath, script, JSON.stringify(options), dir.path, String(64 * MiB)], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const grown = Number(await new Response(child.stdout).text());
    expect(await child.exited).toBe(0);
    expect(grown / MiB).toBeWithin(0, 48);
  });

  test("the marker is replaced only by one who has seen it", async ({ backend, open }) => {
    expect(await backend.marker()).toBe("");
    expect(await backend.mark("store_2 gen_1", "store_1 gen_2")).toBe(false);
    expect(await backend.mark("", "store_1 gen_1")).toBe(true);
    expect(await open().mark("", "store_2 gen_2")).toBe(false);
    expect(await open().mark("store_1 gen_1", "store_1 gen_3")).toBe(true);
    expect([await backend.marker(), await open().marker()]).toEqual(["store_1 gen_3", "store_1 gen_3"]);
    expect((await listed(backend)).blobs).toEqual([]);
  });
});
