/** The domain of accounts and their API keys. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import * as reads from "./accounts-reads.ts";
import { MIGRATIONS } from "./accounts-schema.ts";
import * as writes from "./accounts-writes.ts";

export const accounts = {
  reads,
  writes,
  notDurable: ["keysUsed"],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type AccountStore = Slice<typeof accounts>;
