/** A store in memory: the operations on a database without a file, and switches that take it down or hold it up. */
import { Database } from "bun:sqlite";
import type { NewAccount } from "../../src/account/store/accounts.ts";
import { ledgerCheck } from "../../src/charge/store/ledger.ts";
import type { LedgerReport } from "../../src/charge/store/records.ts";
import type { ChunkSettlement } from "../../src/robot/store/records.ts";
import { DOMAINS, type Store } from "../../src/service/domains.ts";
import { type Run, slicesOf } from "../../src/store/domain.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { onSqlite } from "../../src/store/sqlite/statements.ts";
import { drive, rows } from "../../src/store/steps.ts";
import { StoreDown } from "../../src/store/store.ts";

/** An account with money for whatever a test runs. */
export function funded(id: string, email: string): Required<NewAccount> {
  return {
    id,
    email,
    createdAt: 0,
    credit: 10n ** 15n,
    spendLimit: undefined,
    paymentMethod: false,
    verified: true,
    password: undefined,
  };
}

export interface FakeStore extends Store {
  down: boolean;
  /** Reads of a key so far. */
  keyReads: number;
  /** Chunks that were kept, in order. */
  readonly kept: ChunkSettlement[];
  /** Called before a chunk is kept; what it answers is the outcome, unless that is undefined. */
  beforeKeep: (chunk: ChunkSettlement) => Promise<StoreDown | undefined>;
  /** Called before money is held, likewise. */
  beforeHold: () => Promise<StoreDown | undefined>;
  /** What the ledger's proof says now. */
  report(): LedgerReport;
  /** Rows as they are in the database. */
  rows<Row>(sql: string): readonly Row[];
}

export function fakeStore(): FakeStore {
  const db = new Database(":memory:", { strict: true, safeIntegers: true });
  migrate(db);
  const execute = onSqlite(db);
  const answer = async <T>(run: () => T): Promise<T | StoreDown> =>
    store.down ? new StoreDown("switched off by the test") : run();
  const read: Run =
    ({ steps }) =>
    (argument) =>
      answer(() => drive(steps(argument), execute));
  const write: Run =
    ({ steps }) =>
    (argument) =>
      answer(() => db.transaction(() => drive(steps(argument), execute))());
  const slices = slicesOf(DOMAINS, read, write);
  const { accounts, charges, robot } = slices;
  const store: FakeStore = {
    ...slices,
    accounts: {
      ...accounts,
      keyByPublicId: (publicId) => {
        store.keyReads += 1;
        return accounts.keyByPublicId(publicId);
      },
    },
    charges: { ...charges, hold: async (charge) => (await store.beforeHold()) ?? charges.hold(charge) },
    robot: {
      ...robot,
      settleChunk: async (chunk) => {
        const refusal = await store.beforeKeep(chunk);
        if (refusal) return refusal;
        const outcome = await robot.settleChunk(chunk);
        if (outcome === "kept") store.kept.push(chunk);
        return outcome;
      },
    },
    exclusive: true,
    down: false,
    keyReads: 0,
    kept: [],
    beforeKeep: async () => undefined,
    beforeHold: async () => undefined,
    report: () => drive(ledgerCheck(), execute),
    rows: <Row>(sql: string) => drive(rows<Row>(sql), execute),
    ping: async () => (store.down ? new StoreDown("switched off by the test") : undefined),
    close: async () => db.close(),
  };
  return store;
}
