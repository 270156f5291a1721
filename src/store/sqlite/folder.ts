/** The data folder: private to its owner, and used by one server at a time. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lockFile } from "../../std/file-lock.ts";
import { EXIT, Problem } from "../../std/problem.ts";

export const DATABASE_FILE = "tendon.sqlite";
const LOCK_FILE = "serve.lock";
const PROCESS_FILE = "serve.pid";

/** The operator's next step after a disk error. */
export const DISK_ADVICE =
  "put its disk in order or give it room, then start again, or name another folder with --data";

/** Creates the folder with mode 0700, or restricts an existing one that is empty or tendon's. */
export function prepareFolder(dir: string): Problem | undefined {
  // SQLite creates its files with the process's mask, so the mask keeps them private.
  process.umask(0o077);
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if ((statSync(dir).mode & 0o077) === 0) return undefined;
    if (!existsSync(join(dir, LOCK_FILE)) && readdirSync(dir).length > 0) {
      return new Problem(
        `${dir} is open to other users and holds files that are not tendon's; name an empty folder with --data`,
        EXIT.usage,
      );
    }
    chmodSync(dir, 0o700);
    return undefined;
  } catch (error) {
    return new Problem(`the data folder cannot be used: ${(error as Error).message}; ${DISK_ADVICE}`, EXIT.usage);
  }
}

/** Locks the folder for this process; returns the function that releases it. */
export function lockFolder(dir: string): (() => void) | Problem {
  try {
    const release = lockFile(join(dir, LOCK_FILE));
    if (release === "held") {
      return new Problem(
        `another tendon serve (process ${holder(dir)}) uses ${dir}; stop it, or name another folder with --data`,
        EXIT.usage,
      );
    }
    writeFileSync(join(dir, PROCESS_FILE), `${process.pid}\n`, { mode: 0o600 });
    return release;
  } catch (error) {
    return new Problem(
      `the data folder ${dir} cannot be locked: ${(error as Error).message}; ${DISK_ADVICE}`,
      EXIT.usage,
    );
  }
}

function holder(dir: string): string {
  try {
    return readFileSync(join(dir, PROCESS_FILE), "utf8").trim();
  } catch {
    return "unknown";
  }
}
