/** The domain of robots: sessions that were open, observations that were answered. */
import { settlementTransfer } from "../../charge/store/settle.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { settleChunk } from "./hot.ts";
import * as reads from "./reads.ts";
import * as writes from "./writes.ts";

export const robot = {
  reads,
  writes,
  notDurable: [],
  hot: { settleChunk },
  books: { settleChunk: { outcome: "kept", transfer: settlementTransfer } },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type RobotStore = Slice<typeof robot>;
