/** Small private files, written whole or not at all; parts of large ones; folders that are made durable. */
import { chmod, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { randomBase62 } from "./ids.ts";

/** The text of a file, or undefined when there is none. Other failures are thrown. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Writes `text` to `path` with mode 0600. The folder is made if it is missing, and gets mode 0700 if others may enter it.
 * A reader sees the old file or the new one, also after a power loss.
 */
export async function writePrivate(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (((await stat(folder)).mode & 0o077) !== 0) await chmod(folder, 0o700);
  const temporary = `${path}.${randomBase62(8)}`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await chmod(temporary, 0o600);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

const PIECE_BYTES = 256 * 1024;

/**
 * Bytes [from, to) of a file, each piece in new memory. The file is opened with the first piece: a reader that leaves before it holds no
 * file.
 */
export async function* pieces(path: string, from: number, to: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const file = await open(path, "r");
  try {
    for (let at = from; at < to; ) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, to - at));
      const { bytesRead } = await file.read(piece, 0, piece.length, at);
      if (bytesRead === 0) throw new FileShort("the file is shorter than it was");
      at += bytesRead;
      yield bytesRead === piece.length ? piece : piece.slice(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** A file has fewer bytes than are read of it. */
export class FileShort extends Error {}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  await folder.sync().finally(() => folder.close());
}
