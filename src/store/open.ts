/** The store that the configuration names. */
import type { Problem } from "../error.ts";
import { openPostgresStore } from "./postgres.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { Store } from "./store.ts";

/** `serve` has an embedded store for itself; a command works `beside` it. */
export async function openStore(
  at: { readonly dataDir: string; readonly databaseUrl: string | undefined },
  use: "serve" | "beside",
): Promise<Store | Problem> {
  return at.databaseUrl === undefined ? openSqliteStore(at.dataDir, use) : openPostgresStore(at.databaseUrl);
}
