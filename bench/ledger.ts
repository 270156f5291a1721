/**
 * The two engines that the ledger can stand on, for measurements: SQLite in the data folder of the measured service, and a
 * PostgreSQL server of our own on the same disk with the settings that it comes with. With each, what the disk alone costs.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { type Child, startChild } from "../src/cli/child.ts";
import { SAMPLE_MODEL } from "../src/cli/sample.ts";
import type { Problem } from "../src/error.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/store.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";

export const LEDGERS = ["SQLite", "PostgreSQL"] as const;
type LedgerName = (typeof LEDGERS)[number];

const AT_ONCE_PROGRAM = [process.execPath, join(import.meta.dir, "at-once-child.ts")];
const PAGE_BYTES = 4096;

/** A service in a fresh process on an empty ledger. */
export interface Measured {
  readonly child: Child;
  /** The store that it uses. */
  beside(): Promise<Store | Problem>;
  /** Milliseconds of each of `count` bare durable writes where its ledger is. */
  bareMs(count: number): Promise<number[]>;
}

export interface Ledger extends AsyncDisposable {
  /** What `bareMs` measures. */
  readonly bare: string;
  /** `at once`: the ledger answers from memory. Models answer zeros at once (echo). */
  start(kind: "real" | "at once"): Promise<Measured | Problem>;
}

/** Undefined where the engine is not installed. */
export async function openLedger(name: LedgerName): Promise<Ledger | undefined> {
  if (name === "SQLite") return { bare: "one bare fdatasync", start: onSqlite, [Symbol.asyncDispose]: async () => {} };
  if (POSTGRES === undefined) return undefined;
  const server = await PostgresServer.start();
  return {
    bare: "one bare round trip with commit",
    start: async (kind) => onPostgres(await server.database(), kind),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export const ABSENT = "PostgreSQL: left out, it is not installed here (Debian: apt-get install postgresql)\n";

async function onSqlite(kind: "real" | "at once"): Promise<Measured | Problem> {
  const child = await startService(kind, {});
  if (!("dataDir" in child)) return child;
  const { dataDir } = child;
  return {
    child,
    beside: () => openStore({ dataDir, databaseUrl: undefined }, "beside"),
    bareMs: async (count) => bareSyncMs(dataDir, count),
  };
}

async function onPostgres(databaseUrl: string, kind: "real" | "at once"): Promise<Measured | Problem> {
  const child = await startService(kind, { DATABASE_URL: databaseUrl });
  if (!("dataDir" in child)) return child;
  const { dataDir } = child;
  return {
    child,
    beside: () => openStore({ dataDir, databaseUrl }, "beside"),
    bareMs: (count) => bareCommitMs(databaseUrl, count),
  };
}

function startService(kind: "real" | "at once", environment: Record<string, string>): Promise<Child | Problem> {
  const program = kind === "real" ? {} : { program: AT_ONCE_PROGRAM };
  return startChild({ ...program, model: SAMPLE_MODEL, device: "echo", environment });
}

/** Appends a page and makes it durable, as a commit to a log does at the least. */
function bareSyncMs(folder: string, count: number): number[] {
  const path = join(folder, "bare-sync");
  const file = openSync(path, "w");
  const page = new Uint8Array(PAGE_BYTES);
  const ms = Array.from({ length: count }, () => {
    const before = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - before;
  });
  closeSync(file);
  rmSync(path);
  return ms;
}

async function bareCommitMs(url: string, count: number): Promise<number[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connection: { synchronous_commit: "on" } });
  await sql.unsafe("CREATE TABLE IF NOT EXISTS bare (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)");
  await sql.unsafe("INSERT INTO bare VALUES (1, 0) ON CONFLICT DO NOTHING");
  const ms: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const before = performance.now();
    await sql.unsafe("UPDATE bare SET value = value + 1 WHERE id = 1", [], { prepare: true });
    ms.push(performance.now() - before);
  }
  await sql.end();
  return ms;
}
