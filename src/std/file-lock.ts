/** A lock between processes, on a file. */
import { Database } from "bun:sqlite";

/**
 * Locks the file, which is made if it is missing, and returns the function that releases it; `held` if another one has it. The lock is
 * an SQLite transaction that is never ended: the operating system releases it when the process ends, however that happens.
 */
export function lockFile(path: string): (() => void) | "held" {
  const lock = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    lock.run("BEGIN EXCLUSIVE");
    return () => lock.close();
  } catch (error) {
    lock.close();
    if ((error as { code?: string }).code === "SQLITE_BUSY") return "held";
    throw error;
  }
}
