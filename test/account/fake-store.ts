/** A store in memory: the SQL operations on a database without a file, and a switch that takes it down. */
import { Database } from "bun:sqlite";
import { migrate } from "../../src/store/migrations.ts";
import { readsOn, writesOn } from "../../src/store/operations.ts";
import { type Store, StoreDown } from "../../src/store/store.ts";

export interface FakeStore extends Store {
  down: boolean;
  /** Reads of a key so far. */
  keyReads: number;
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
    accountAdd: (account) => answer(() => writes.accountAdd(account)),
    keyAdd: (key) => answer(() => writes.keyAdd(key)),
    keyRevoke: (revocation) => answer(() => writes.keyRevoke(revocation)),
    accountByEmail: (email) => answer(() => reads.accountByEmail(email)),
    keyByPublicId: (publicId) => {
      store.keyReads += 1;
      return answer(() => reads.keyByPublicId(publicId));
    },
    ping: async () => (store.down ? new StoreDown("switched off by the test") : undefined),
    close: async () => db.close(),
  };
  return store;
}
