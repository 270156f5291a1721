/** The domain of accounts and their API keys. */
import type { DomainOf, Slice } from "../domain.ts";
import * as reads from "./reads.ts";
import { MIGRATIONS } from "./schema.ts";
import * as writes from "./writes.ts";

export const accounts = {
  reads,
  writes,
  notDurable: ["keysUsed"],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type AccountStore = Slice<typeof accounts>;
