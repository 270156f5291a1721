/** The domain of language models: responses, and the processes that run them. */
import { settlementTransfer } from "../../charge/store/settle.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import * as reads from "./reads.ts";
import { MIGRATIONS } from "./schema.ts";
import * as writes from "./writes.ts";

export const llm = {
  reads,
  writes,
  notDurable: ["submit", "ownerBeat"],
  books: { complete: { outcome: "kept", transfer: settlementTransfer } },
  migrations: MIGRATIONS,
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type LlmStore = Slice<typeof llm>;
