/**
 * A store whose operations on a robot's path answer at once, from memory: the service without its ledger, to compare with.
 * All else, such as the account that `serve --dev` makes, is the configured store's.
 */
import { Problem } from "../src/error.ts";
import { openStore } from "../src/store/open.ts";
import { type KeyRecord, type Store, StoreDown } from "../src/store/store.ts";

export const AT_ONCE = {
  hold: async () => "held",
  release: async () => "released",
  settleChunk: async () => "kept",
  sessionLastAt: async () => undefined,
  observation: async () => undefined,
  keysRevision: async () => 0n,
  keysUsed: async () => "done",
} satisfies Partial<Store>;

export async function openAtOnceStore(...at: Parameters<typeof openStore>): Promise<Store | Problem> {
  const store = await openStore(...at);
  if (store instanceof Problem) return store;
  const known = new Map<string, KeyRecord>();
  const keyByPublicId: Store["keyByPublicId"] = async (publicId) => {
    const record = known.get(publicId) ?? (await store.keyByPublicId(publicId));
    if (record !== undefined && !(record instanceof StoreDown)) known.set(publicId, record);
    return record;
  };
  return { ...store, ...AT_ONCE, keyByPublicId };
}
