/**
 * Blobs in a folder: `blobs/XX/ID`, XX the end of the id. A file is written and synced under another name, renamed, and its folder
 * synced: it is there whole or not at all. Parts of an assembly stand in `parts/ID/NUMBER-NONCE`. `blobs/store-id` says to which
 * store of records the blobs belong; it lies among them, so that it goes wherever they are moved or copied.
 */
import { createHash } from "node:crypto";
import {
  access,
  constants,
  type FileHandle,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Assembly, Backend, BlobFacts, Changed, Joined, PartTag, Staged } from "./backend.ts";
import { Folders, syncFolder } from "./folders.ts";

const PIECE_BYTES = 256 * 1024;
/** Of a copy: read ahead, so that the disk and the digest work side by side. */
const COPY_BYTES = 512 * 1024;

/** Names of ours: others may lie beside them, such as `lost+found`. */
const ID = /^blob_\w+$/;
const BLOBS_FOLDER = /^\w\w$/;

/** Where a blob lies. Its id is one of ours: letters, digits and `_`. */
export function blobPath(folder: string, id: string): string {
  return join(folder, "blobs", id.slice(-2), id);
}

/** `staging`: from where what has come is moved; undefined: nothing comes. */
export function folderBackend(folder: string, nonce: () => string, staging?: string): Backend {
  const blobs = join(folder, "blobs");
  const parts = join(folder, "parts");
  const marker = join(blobs, "store-id");
  const partsOf = (id: string) => join(parts, id);
  const folders = new Folders();

  /** From another name in the same file system, durable when it resolves. */
  const publish = async (from: string, to: string) => {
    const target = dirname(to);
    await folders.made(target);
    await rename(from, to).catch(async (error) => {
      // Somebody has removed the folder since it was made.
      missing(error);
      folders.forget(target);
      await folders.made(target);
      await rename(from, to);
    });
    await syncFolder(target);
  };

  /** The ways that bytes go are gone once, so that a mount among them shows at the start. */
  const tryMoves = async (from: string) => {
    const name = `check-${nonce()}`;
    const places = [from, parts, blobs].map((place) => join(place, name));
    try {
      await writeFile(join(from, name), "", { flag: "wx", mode: 0o600 });
      for (const [index, place] of places.slice(1).entries()) await rename(places[index] ?? "", place);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
      throw new Error(`${from}, ${parts} and ${blobs} are not on one mount; mount the folder above them instead`);
    } finally {
      for (const place of places) await rm(place, { force: true });
    }
  };

  const joinParts = async ({ id }: Assembly, tags: readonly PartTag[]): Promise<Joined | Changed> => {
    const target = blobPath(folder, id);
    const making = join(partsOf(id), `whole-${nonce()}`);
    const copy = await copyParts(
      tags.map(({ tag }) => join(partsOf(id), tag)),
      making,
    ).catch((error) => missing(error));
    if (copy) {
      await publish(making, target);
      return copy;
    }
    // An earlier call has done it, and its answer was lost.
    const there = await digestOf(target);
    if (there) return there;
    const found = new Set(await readdir(partsOf(id)).catch((error) => missing(error) ?? []));
    return { changed: tags.filter(({ tag }) => !found.has(tag)).map(({ part }) => part) };
  };

  return {
    check: async () => {
      for (const one of [blobs, parts]) {
        await folders.made(one);
        await access(one, constants.R_OK | constants.W_OK | constants.X_OK);
      }
      if (staging !== undefined) await tryMoves(staging);
    },
    identity: async (id) => {
      const found = await readFile(marker, "utf8").catch(missing);
      if (found !== undefined || id === undefined) return found?.trim();
      const making = `${marker}-${nonce()}`;
      await writeFile(making, `${id}\n`, { flag: "wx", mode: 0o600 });
      await syncFile(making);
      await publish(making, marker);
      return id;
    },
    put: async ({ path }: Staged, id) => {
      await syncFile(path);
      await publish(path, blobPath(folder, id));
    },
    begin: async () => "",
    putPart: async ({ path }, { id }, part) => {
      const tag = `${part}-${nonce()}`;
      await syncFile(path);
      await publish(path, join(partsOf(id), tag));
      return tag;
    },
    removePart: ({ id }, tag) => rm(join(partsOf(id), tag), { force: true }),
    join: joinParts,
    abandon: async ({ id }) => {
      folders.forget(partsOf(id));
      await rm(partsOf(id), { recursive: true, force: true });
    },
    read: async (id, from, to) => {
      const file = await open(blobPath(folder, id), "r").catch(missing);
      return file && pieces(file, from, to);
    },
    remove: async (ids) => {
      for (const id of ids) await rm(blobPath(folder, id), { force: true });
    },
    list: async (after) => {
      const names = (await readdir(blobs)).filter((name) => BLOBS_FOLDER.test(name));
      const places = [...names.sort().map((name) => join(blobs, name)), parts];
      const index = after === undefined ? 0 : Number(after);
      const path = places[index];
      const found = path === undefined ? [] : await factsOf(path);
      return { blobs: found, next: index + 1 < places.length ? String(index + 1) : undefined };
    },
  };
}

/** What cannot be read is left out: it is none of ours, or its files are found to be missing. */
async function factsOf(path: string): Promise<BlobFacts[]> {
  const names = (await readdir(path).catch(unreadable)) ?? [];
  const facts = names.map(async (id) => {
    const found = ID.test(id) ? await stat(join(path, id)).catch(unreadable) : undefined;
    if (!found) return [];
    return [{ id, size: found.size, at: Math.floor(found.mtimeMs / 1000), begun: found.isDirectory() }];
  });
  return (await Promise.all(facts)).flat();
}

/** Undefined where the error says that there is no such file. */
function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** Undefined also where it may not be read, or is no folder. */
function unreadable(error: unknown): undefined {
  if (!["EACCES", "EPERM", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) missing(error);
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  await file.datasync().finally(() => file.close());
}

/**
 * Bytes [from, to) of the file, which is closed at the end and when the reader leaves. No generator: one that was never begun does not
 * run its `finally`, and a reader may leave before the first piece.
 */
function pieces(file: FileHandle, from: number, to: number): AsyncIterableIterator<Uint8Array, undefined> {
  let at = from;
  let closing: Promise<void> | undefined;
  const end = async () => {
    closing ??= file.close();
    await closing;
    return { done: true, value: undefined } as const;
  };
  const next = async () => {
    if (closing || at >= to) return await end();
    const block = new Uint8Array(Math.min(PIECE_BYTES, to - at));
    const { bytesRead } = await file.read(block, 0, block.length, at);
    if (bytesRead === 0) throw new Error("the blob is shorter than its record says");
    at += bytesRead;
    return { done: false, value: bytesRead === block.length ? block : block.slice(0, bytesRead) } as const;
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () =>
      next().catch(async (error) => {
        await end();
        throw error;
      }),
    return: end,
  };
}

/** The files one after another in one new file, synced. Rejects with ENOENT where one is missing; the new file is gone then. */
async function copyParts(from: readonly string[], to: string): Promise<Joined> {
  const target = await open(to, "wx", 0o600);
  try {
    const hash = createHash("sha256");
    // One is read into while the other is written.
    let [block, other] = [new Uint8Array(COPY_BYTES), new Uint8Array(COPY_BYTES)];
    let size = 0;
    let written: Promise<unknown> = Promise.resolve();
    for (const path of from) {
      const source = await open(path, "r");
      try {
        for (;;) {
          const { bytesRead } = await source.read(block, 0, block.length);
          if (bytesRead === 0) break;
          const read = block.subarray(0, bytesRead);
          [block, other] = [other, block];
          await written;
          written = writeAll(target, read, size);
          // Awaited with the next block; a failure must not count as unhandled until then.
          written.catch(() => {});
          hash.update(read);
          size += bytesRead;
        }
      } finally {
        await source.close();
      }
    }
    await written;
    await target.datasync();
    return { size, sha256: new Uint8Array(hash.digest()) };
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  } finally {
    await target.close();
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}

async function digestOf(path: string): Promise<Joined | undefined> {
  const file = await open(path, "r").catch(missing);
  if (!file) return undefined;
  const { size } = await file.stat();
  const hash = createHash("sha256");
  for await (const piece of pieces(file, 0, size)) hash.update(piece);
  return { size, sha256: new Uint8Array(hash.digest()) };
}
