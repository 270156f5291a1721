/**
 * Stores to compare the ledger with. `at once`: the operations on a robot's path answer from memory, the service without its
 * ledger. `bare`: the same, but a settlement is one durable write to the place where the ledger would be. So the speed of
 * the disk is the same on both sides. Other operations, such as making the account of `serve --dev`, go to the configured store.
 */
import { fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import type { Store } from "../src/service/domains.ts";
import { openStore } from "../src/service/store.ts";
import { Problem } from "../src/std/problem.ts";

export const AT_ONCE = {
  accounts: { keysRevision: async () => 0n, keysUsed: async () => "done", keysRecent: async () => [] },
  charges: { hold: async () => "held", release: async () => "released", affords: async () => "affords" },
  robot: {
    settleChunk: async () => "kept",
    sessionLastAt: async () => undefined,
    observation: async () => undefined,
  },
} satisfies { readonly [Domain in keyof Store]?: Partial<Store[Domain]> };

const PAGE_BYTES = 4096;

/** `openStore` for `serve`, with one of the two stores in its place. */
export function openInstead(kind: "at once" | "bare"): typeof openStore {
  return async (...at) => {
    const store = await openStore(...at);
    if (store instanceof Problem) return store;
    const instead = {
      ...store,
      accounts: { ...store.accounts, ...AT_ONCE.accounts },
      charges: { ...store.charges, ...AT_ONCE.charges },
      robot: { ...store.robot, ...AT_ONCE.robot },
    };
    if (kind === "at once") return instead;
    const [{ dataDir, databaseUrl }] = at;
    const write = databaseUrl === undefined ? bareSync(dataDir) : await bareCommit(databaseUrl);
    const settleChunk = () => write().then(() => "kept" as const);
    return { ...instead, robot: { ...instead.robot, settleChunk } };
  };
}

/** Overwrites a page that the file already has and makes it durable: the least that a commit to a log has to do. */
function bareSync(folder: string): () => Promise<void> {
  const file = openSync(join(folder, "bare-sync"), "w");
  const page = new Uint8Array(PAGE_BYTES);
  writeSync(file, page);
  fdatasyncSync(file);
  return async () => {
    writeSync(file, page, 0, PAGE_BYTES, 0);
    fdatasyncSync(file);
  };
}

/** One statement by itself: one round trip, one row, one commit. */
async function bareCommit(url: string): Promise<() => Promise<void>> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connection: { synchronous_commit: "on" } });
  await sql.unsafe("CREATE TABLE bare (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)");
  await sql.unsafe("INSERT INTO bare VALUES (1, 0)");
  return async () => {
    await sql.unsafe("UPDATE bare SET value = value + 1 WHERE id = 1", [], { prepare: true });
  };
}
