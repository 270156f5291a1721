/** The domain of money: holds, settlements, credits, usage, and the proof of the ledger. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import { hold, release } from "./hot.ts";
import * as reads from "./reads.ts";
import * as writes from "./writes.ts";

export const charges = {
  reads,
  writes,
  // A crash then gives the money back, which is right.
  notDurable: ["hold", "release"],
  snapshots: ["ledgerCheck"],
  hot: { hold, release },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type ChargeStore = Slice<typeof charges>;
