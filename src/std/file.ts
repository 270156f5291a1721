/** Small private files, written whole or not at all. */
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
