/** Both engines of the store, for tests that hold for each: SQLite in a folder, and a real PostgreSQL server. */
import { Database } from "bun:sqlite";
import { describe, test } from "bun:test";
import { join } from "node:path";
import postgres from "postgres";
import { testRequirement } from "../../src/config/environment.ts";
import type { Store } from "../../src/service/domains.ts";
import { openStore } from "../../src/service/store.ts";
import { Problem } from "../../src/std/problem.ts";
import { POSTGRES, PostgresServer } from "./postgres-server.ts";
import { temporaryFolder } from "./temporary.ts";

export type EngineName = "SQLite" | "PostgreSQL";

const REASON = "PostgreSQL is not installed (Debian: apt-get install postgresql); .ci/run installs it";

/** Each engine with the title of its tests, and whether they cannot run here. */
export const ENGINES = (["SQLite", "PostgreSQL"] as const).map((name) => {
  const absent = name === "PostgreSQL" && POSTGRES === undefined && testRequirement() === "none";
  return { name, absent, title: absent ? `${name}: skipped, ${REASON}` : name };
});

/** Tests that need a real PostgreSQL server. */
export function onPostgres(tests: () => void): void {
  for (const { absent, title } of ENGINES.filter(({ name }) => name === "PostgreSQL")) {
    describe.skipIf(absent)(title, tests);
  }
}

/** What was opened; throws where it cannot be used. */
export function usable<T>(opened: T | Problem): T {
  if (opened instanceof Problem) throw new Error(opened.message);
  return opened;
}

/** A store that can be closed and opened again on what it kept. */
export interface Place extends AsyncDisposable {
  open(): Promise<Store>;
  /** What `serve` must be told to use it. */
  readonly dir: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Changes rows behind the store's back. */
  corrupt(sql: string): Promise<void>;
  /** Rows as they are in the database; every integer is a bigint. */
  rows(sql: string): Promise<readonly Record<string, unknown>[]>;
}

let server: PostgresServer | undefined;

/** Tests of an open store on this engine. */
export function storeTest(engine: EngineName) {
  return (title: string, run: (store: Store, at: Place) => Promise<void>): void => {
    const opened = async () => {
      await using at = await place(engine);
      await run(await at.open(), at);
    };
    test(title, opened, 60_000);
  };
}

/** One server for all tests of a file; to be called in `beforeAll`. */
export async function startServer(): Promise<void> {
  if (POSTGRES !== undefined) server = await PostgresServer.start("fsync=off");
}

/** The server of this file's tests, which one of them may crash. */
export function postgresServer(): PostgresServer {
  if (!server) throw new Error("the server has not been started");
  return server;
}

/** In `afterAll`. */
export async function stopServer(): Promise<void> {
  await server?.[Symbol.asyncDispose]();
}

export async function place(engine: EngineName): Promise<Place> {
  const dir = await temporaryFolder();
  const url = engine === "PostgreSQL" ? await server?.database() : undefined;
  const stores: Store[] = [];
  return {
    dir: dir.path,
    environment: url === undefined ? {} : { DATABASE_URL: url },
    open: async () => {
      const use = url === undefined ? "serve" : "beside";
      const store = usable(await openStore({ dataDir: dir.path, databaseUrl: url }, use));
      stores.push(store);
      return store;
    },
    corrupt: async (sql) => {
      if (url === undefined) {
        using db = new Database(join(dir.path, "tendon.sqlite"));
        db.run(sql);
        return;
      }
      const client = postgres(url, { max: 1 });
      await client.unsafe(sql);
      await client.end();
    },
    rows: async (sql) => {
      if (url === undefined) {
        using db = new Database(join(dir.path, "tendon.sqlite"), { safeIntegers: true });
        return db.query<Record<string, unknown>, []>(sql).all();
      }
      const bigint = { to: 20, from: [20], parse: BigInt, serialize: String };
      const client = postgres(url, { max: 1, types: { bigint } });
      const found = await client.unsafe(sql);
      await client.end();
      return [...found];
    },
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}
