/** The store of this program, where the configuration says, with its domains and its threads. */
import { join } from "node:path";
import { Problem } from "../std/problem.ts";
import { markFile } from "../store/postgres/high-water.ts";
import { lockFolder, prepareFolder } from "../store/sqlite/folder.ts";
import { openSqliteStore } from "../store/sqlite/store.ts";
import { DOMAINS, type Store } from "./domains.ts";

/**
 * A thread of the service. In the compiled executable the modules are one file at the virtual root, and entry points stand below it by
 * their paths in `src/`, provided that the compile script (src/setup/compile.ts) lists them beside `main.ts`.
 */
export function threadOf(entry: "writer" | "blob-thread"): Worker {
  const path = import.meta.url.includes("$bunfs") ? `./service/${entry}.js` : `./${entry}.ts`;
  return new Worker(new URL(path, import.meta.url));
}

/** A file in the data folder, beside a database elsewhere. */
const MARK_FILE = "ledger-mark.json";

/** `serve` locks its data folder, wherever the store is; a command works `beside` it. */
export async function openStore(
  { dataDir, databaseUrl }: { readonly dataDir: string; readonly databaseUrl: string | undefined },
  use: "serve" | "beside",
): Promise<Store | Problem> {
  if (databaseUrl === undefined) return openSqliteStore(DOMAINS, () => threadOf("writer"), dataDir, use);
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  if (use === "beside") return openPostgresStore(DOMAINS, databaseUrl);
  const release = prepareFolder(dataDir) ?? lockFolder(dataDir);
  if (release instanceof Problem) return release;
  const store = await openPostgresStore(DOMAINS, databaseUrl, { mark: markFile(join(dataDir, MARK_FILE)) });
  if (store instanceof Problem) {
    release();
    return store;
  }
  const close = async () => {
    await store.close();
    release();
  };
  return { ...store, close };
}
