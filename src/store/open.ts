/** The store that the configuration names. */
import { Problem } from "../error/problem.ts";
import type { Domains } from "./domain.ts";
import { openPostgresStore } from "./postgres/store.ts";
import { lockFolder, prepareFolder } from "./sqlite/folder.ts";
import { openSqliteStore } from "./sqlite/store.ts";
import type { StoreOf } from "./store.ts";

export interface StorePlace {
  readonly dataDir: string;
  readonly databaseUrl: string | undefined;
}

/** `serve` locks its data folder, wherever the store is; a command works `beside` it. */
export type StoreUse = "serve" | "beside";

/** `writer`: starts the writer thread of these domains (sqlite/writer.ts). */
export async function openStoreOf<D extends Domains>(
  domains: D,
  writer: () => Worker,
  { dataDir, databaseUrl }: StorePlace,
  use: StoreUse,
): Promise<StoreOf<D> | Problem> {
  if (databaseUrl === undefined) return openSqliteStore(domains, writer, dataDir, use);
  if (use === "beside") return openPostgresStore(domains, databaseUrl);
  const lock = prepareFolder(dataDir) ?? lockFolder(dataDir);
  if (lock instanceof Problem) return lock;
  const store = await openPostgresStore(domains, databaseUrl);
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
