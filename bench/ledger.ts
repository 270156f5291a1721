/**
 * The two engines of the ledger, for measurements: SQLite in the data folder of the measured service, and a
 * PostgreSQL server on the same disk with its default settings.
 */
import { join } from "node:path";
import { type Child, startChild } from "../src/measure/child.ts";
import type { Store } from "../src/service/domains.ts";
import { openStore } from "../src/service/store.ts";
import { Problem } from "../src/std/problem.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";

const LEDGERS = ["SQLite", "PostgreSQL"] as const;
type LedgerName = (typeof LEDGERS)[number];

const OTHER_PROGRAM = [process.execPath, join(import.meta.dir, "server-child.ts")];

/** What answers on the robot's path: the ledger, or a store to compare it with (at-once-store.ts). */
export type Answers = "real" | "bare" | "at once";

/** A service in a fresh process on an empty ledger. */
export interface Measured {
  readonly child: Child;
  /** The store that it uses. */
  beside(): Promise<Store | Problem>;
}

export interface Ledger extends AsyncDisposable {
  readonly name: LedgerName;
  /** What a bare durable write is here. */
  readonly bare: string;
  /** Models answer zeros at once (echo). */
  start(answers: Answers, configuration?: string): Promise<Measured | Problem>;
}

/** The rounds that a proof measures with one ledger. */
export interface LedgerRounds<Round> {
  readonly name: LedgerName;
  readonly bare: string;
  readonly rounds: readonly Round[];
}

/** `count` rounds with each ledger, one ledger after the other; one whose engine is not installed is left out. */
export async function measuredLedgers<Round>(
  count: number,
  measured: (ledger: Ledger) => Promise<Round | Problem>,
): Promise<LedgerRounds<Round>[] | Problem> {
  const found: LedgerRounds<Round>[] = [];
  for (const name of LEDGERS) {
    await using ledger = await openLedger(name);
    if (!ledger) continue;
    const rounds: Round[] = [];
    for (let at = 0; at < count; at += 1) {
      const round = await measured(ledger);
      if (round instanceof Problem) return round;
      rounds.push(round);
    }
    found.push({ name, bare: ledger.bare, rounds });
  }
  return found;
}

/** What a proof's text says of a ledger that was left out. */
export function absentText(found: readonly LedgerRounds<unknown>[]): string[] {
  return found.length === LEDGERS.length
    ? []
    : ["PostgreSQL: left out, it is not installed here (Debian: apt-get install postgresql)\n"];
}

/** Undefined where the engine is not installed. */
async function openLedger(name: LedgerName): Promise<Ledger | undefined> {
  if (name === "SQLite") {
    const start: Ledger["start"] = (answers, configuration) => startService(answers, undefined, configuration);
    return { name, bare: "one bare fdatasync", start, [Symbol.asyncDispose]: async () => {} };
  }
  if (POSTGRES === undefined) return undefined;
  const server = await PostgresServer.start();
  return {
    ...{ name, bare: "one bare round trip with commit" },
    start: async (answers, configuration) => startService(answers, await server.database(), configuration),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function startService(
  answers: Answers,
  databaseUrl: string | undefined,
  configuration = "",
): Promise<Measured | Problem> {
  const child = await startChild({
    ...(answers === "real" ? {} : { program: [...OTHER_PROGRAM, answers] }),
    ...{ device: "echo", configuration },
    environment: databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl },
  });
  if (child instanceof Problem) return child;
  return { child, beside: () => openStore({ dataDir: child.dataDir, databaseUrl }, "beside") };
}
