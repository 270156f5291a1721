/** The store that the configuration names. */
import { Problem } from "../error/problem.ts";
import { lockFolder, prepareFolder } from "./folder.ts";
import { openPostgresStore } from "./postgres.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { Store } from "./store.ts";

/** `serve` has its data folder for itself, wherever the store is; a command works `beside` it. */
export async function openStore(
  at: { readonly dataDir: string; readonly databaseUrl: string | undefined },
  use: "serve" | "beside",
): Promise<Store | Problem> {
  if (at.databaseUrl === undefined) return openSqliteStore(at.dataDir, use);
  if (use === "beside") return openPostgresStore(at.databaseUrl);
  const lock = prepareFolder(at.dataDir) ?? lockFolder(at.dataDir);
  if (lock instanceof Problem) return lock;
  const store = await openPostgresStore(at.databaseUrl);
  if (store instanceof Problem) {
    lock.release();
    return store;
  }
  const close = async () => {
    await store.close();
    lock.release();
  };
  return { ...store, close };
}
