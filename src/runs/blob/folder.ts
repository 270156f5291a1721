/**
 * Blobs in a folder. A blob is `blobs/XX/ID`, where XX is the end of its id; parts of an assembly are `parts/ID/NUMBER-NONCE`. A file is
 * written and synced under another name, renamed, and its folder is synced, so it exists as a whole or not at all. `blobs/store-id`
 * names the store of records that owns the blobs. It lies among them, so that it moves with them.
 */
import { access, constants, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pieces, readText, syncFolder } from "../../std/file.ts";
import {
  type Assembly,
  type Backend,
  type BlobFacts,
  type Changed,
  digestOf,
  type Joined,
  type PartTag,
} from "./backend.ts";
import { copyFiles, Folders, syncFile } from "./disk.ts";

/** The names of blobs and their folders. Other files may lie beside them, such as `lost+found`. */
const ID = /^blob_\w+$/;
const BLOBS_FOLDER = /^\w\w$/;

/** The path of a blob. Its id consists of letters, digits and `_`. */
export function blobPath(folder: string, id: string): string {
  return join(folder, "blobs", id.slice(-2), id);
}

/** `staging` is the folder that received bodies are moved from; undefined if no bodies arrive. */
export function folderBackend(folder: string, nonce: () => string, staging?: string): Backend {
  const blobs = join(folder, "blobs");
  const parts = join(folder, "parts");
  const marker = join(blobs, "store-id");
  const readMarker = async () => ((await readText(marker)) ?? "").trim();
  const partsOf = (id: string) => join(parts, id);
  const folders = new Folders();

  /** Renames a file within the file system. The new name is durable when it resolves. */
  const publish = async (from: string, to: string) => {
    const target = dirname(to);
    await folders.made(target);
    await rename(from, to).catch(async (error) => {
      // The folder may have been removed since it was made.
      missing(error);
      folders.forget(target);
      await folders.made(target);
      await rename(from, to);
    });
    await syncFolder(target);
  };

  /** Moves a file as bodies are moved, so that a mount among the folders is found at the start. */
  const tryMoves = async (from: string) => {
    const name = `check-${nonce()}`;
    const [start, middle, end] = [join(from, name), join(parts, name), join(blobs, name)] as const;
    try {
      await writeFile(start, "", { flag: "wx", mode: 0o600 });
      await rename(start, middle);
      await rename(middle, end);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
      throw new Error(`${from}, ${parts} and ${blobs} are not on one mount; mount the folder above them instead`);
    } finally {
      for (const path of [start, middle, end]) await rm(path, { force: true });
    }
  };

  const joinParts = async ({ id }: Assembly, tags: readonly PartTag[]): Promise<Joined | Changed> => {
    const target = blobPath(folder, id);
    const making = join(partsOf(id), `whole-${nonce()}`);
    const paths = tags.map(({ tag }) => join(partsOf(id), tag));
    const copy = await copyFiles(paths, making).catch(missing);
    if (copy) {
      await publish(making, target);
      return copy;
    }
    // An earlier call may have joined them, and its answer was lost.
    const there = await stat(target).catch(missing);
    if (there) return { size: there.size, sha256: await digestOf(pieces(target, 0, there.size)) };
    const found = new Set(await readdir(partsOf(id)).catch(missing));
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
    marker: readMarker,
    mark: async (from, to) => {
      // The lock of the data folder keeps other writers away.
      if ((await readMarker()) !== from) return false;
      const making = `${marker}.new`;
      await writeFile(making, `${to}\n`, { mode: 0o600 });
      await syncFile(making);
      await publish(making, marker);
      return true;
    },
    put: async ({ path }, id) => {
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
      const path = blobPath(folder, id);
      return (await stat(path).catch(missing)) && pieces(path, from, to);
    },
    remove: async (ids) => {
      for (const id of ids) await rm(blobPath(folder, id), { force: true });
    },
    list: async (after) => {
      const names = (await readdir(blobs)).filter((name) => BLOBS_FOLDER.test(name));
      const paths = [...names.sort().map((name) => join(blobs, name)), parts];
      const index = after === undefined ? 0 : Number(after);
      const path = paths[index];
      const found = path === undefined ? [] : await factsOf(path);
      return { blobs: found, next: index + 1 < paths.length ? String(index + 1) : undefined };
    },
  };
}

/** An entry that cannot be read is left out: it is no blob, or its file is then reported as missing. */
async function factsOf(path: string): Promise<BlobFacts[]> {
  const names = (await readdir(path).catch(unreadable)) ?? [];
  const facts = names.map(async (id) => {
    const found = ID.test(id) ? await stat(join(path, id)).catch(unreadable) : undefined;
    if (!found) return [];
    return [{ id, size: found.size, at: Math.floor(found.mtimeMs / 1000), begun: found.isDirectory() }];
  });
  return (await Promise.all(facts)).flat();
}

/** Undefined if the error means that there is no such file; other errors are thrown. */
function missing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** Undefined also if the file may not be read, or is no folder. */
function unreadable(error: unknown): undefined {
  if (!["EACCES", "EPERM", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) missing(error);
}
