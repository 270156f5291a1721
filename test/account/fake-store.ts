/** A store in memory: the SQL operations on a database without a file, and switches that take it down or hold it up. */
import { Database } from "bun:sqlite";
import { migrate } from "../../src/store/migrations.ts";
import { readsOn, writesOn } from "../../src/store/operations.ts";
import { type ChunkRecord, type Store, StoreDown } from "../../src/store/store.ts";

export interface FakeStore extends Store {
  down: boolean;
  /** Reads of a key so far. */
  keyReads: number;
  /** Chunks that were kept, in order. */
  readonly kept: ChunkRecord[];
  /** Called before a chunk is kept; what it answers is the outcome, unless that is undefined. */
  beforeKeep: (chunk: ChunkRecord) => Promise<StoreDown | undefined>;
}

export function fakeStore(): FakeStore {
  const db = new Database(":memory:", { strict: true });
  migrate(db);
  const writes = writesOn(db);
  const reads = readsOn(db);
  const answer = async <T>(run: () => T): Promise<T | StoreDown> =>
    store.down ? new StoreDown("switched off by the test") : run();
  const store: FakeStore = {
    down: false,
    keyReads: 0,
    kept: [],
    beforeKeep: async () => undefined,
    accountAdd: (account) => answer(() => writes.accountAdd(account)),
    keyAdd: (key) => answer(() => writes.keyAdd(key)),
    keyRevoke: (revocation) => answer(() => writes.keyRevoke(revocation)),
    chunkKeep: async (chunk) => {
      const refusal = await store.beforeKeep(chunk);
      if (refusal) return refusal;
      return answer(() => {
        store.kept.push(chunk);
        return writes.chunkKeep(chunk);
      });
    },
    chunksForget: (retention) => answer(() => writes.chunksForget(retention)),
    accountByEmail: (email) => answer(() => reads.accountByEmail(email)),
    keyByPublicId: (publicId) => {
      store.keyReads += 1;
      return answer(() => reads.keyByPublicId(publicId));
    },
    sessionLastAt: (session) => answer(() => reads.sessionLastAt(session)),
    observation: (key) => answer(() => reads.observation(key)),
    ping: async () => (store.down ? new StoreDown("switched off by the test") : undefined),
    close: async () => db.close(),
  };
  return store;
}
