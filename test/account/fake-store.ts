/** A store in memory: the operations on a database without a file, and switches that take it down or hold it up. */
import { Database } from "bun:sqlite";
import { onSqlite } from "../../src/store/dialect.ts";
import { migrate } from "../../src/store/migrations.ts";
import { operationsOf, READS, WRITES } from "../../src/store/operations.ts";
import { drive } from "../../src/store/steps.ts";
import {
  type ChunkRecord,
  type LedgerReport,
  type NewAccount,
  type Reads,
  type Store,
  StoreDown,
  type Writes,
} from "../../src/store/store.ts";

/** An account with money for whatever a test runs. */
export function funded(id: string, email: string): NewAccount {
  return {
    id,
    email,
    createdAt: 0,
    credit: 10n ** 15n,
    spendLimit: undefined,
    paymentMethod: false,
    password: undefined,
  };
}

export interface FakeStore extends Store {
  down: boolean;
  /** Reads of a key so far. */
  keyReads: number;
  /** Chunks that were kept, in order. */
  readonly kept: ChunkRecord[];
  /** Called before a chunk is kept; what it answers is the outcome, unless that is undefined. */
  beforeKeep: (chunk: ChunkRecord) => Promise<StoreDown | undefined>;
  /** Called before money is held, likewise. */
  beforeHold: () => Promise<StoreDown | undefined>;
  /** What the ledger's proof says now. */
  report(): LedgerReport;
}

export function fakeStore(): FakeStore {
  const db = new Database(":memory:", { strict: true, safeIntegers: true });
  migrate(db);
  const execute = onSqlite(db);
  const answer = async (run: () => unknown): Promise<unknown> =>
    store.down ? new StoreDown("switched off by the test") : run();
  const list = {
    ...operationsOf<Writes>(
      WRITES,
      (_name, steps) => (argument) => answer(() => db.transaction(() => drive(steps(argument), execute))()),
    ),
    ...operationsOf<Reads>(READS, (_name, steps) => (argument) => answer(() => drive(steps(argument), execute))),
  } as unknown as Store;
  const store: FakeStore = {
    ...list,
    exclusive: true,
    down: false,
    keyReads: 0,
    kept: [],
    beforeKeep: async () => undefined,
    beforeHold: async () => undefined,
    hold: async (run) => (await store.beforeHold()) ?? list.hold(run),
    settleChunk: async (chunk) => {
      const refusal = await store.beforeKeep(chunk);
      if (refusal) return refusal;
      const outcome = await list.settleChunk(chunk);
      if (outcome === "kept") store.kept.push(chunk);
      return outcome;
    },
    keyByPublicId: (publicId) => {
      store.keyReads += 1;
      return list.keyByPublicId(publicId);
    },
    report: () => drive(READS.ledgerCheck("all"), execute),
    ping: async () => (store.down ? new StoreDown("switched off by the test") : undefined),
    close: async () => db.close(),
  };
  return store;
}
