/** Folders for the time of some work. None stays, also where Ctrl-C or a stop ends the process before the work. */
import { mkdtempSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const standing = new Set<string>();

/** Calls `work` with a new folder, whose path is `prefix` and six characters. The work may rename it. Throws as the file system does. */
export async function inTemporaryFolder<T>(prefix: string, work: (folder: string) => Promise<T>): Promise<T> {
  // All at once: signals are heard between turns of the event loop.
  const folder = mkdtempSync(prefix);
  if (standing.size === 0) for (const signal of SIGNALS) process.on(signal, leave);
  standing.add(folder);
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
    standing.delete(folder);
    if (standing.size === 0) for (const signal of SIGNALS) process.off(signal, leave);
  }
}

/** Ends the process as the signal would have done by itself, which a shell shows as 130 or 143. */
function leave(signal: NodeJS.Signals): void {
  for (const one of SIGNALS) process.off(one, leave);
  try {
    for (const folder of standing) rmSync(folder, { recursive: true, force: true });
  } finally {
    process.kill(process.pid, signal);
  }
}
