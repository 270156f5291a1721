/** The domain of the runs of robots: their files, uploads and totals. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import * as reads from "./reads.ts";
import { MIGRATIONS } from "./schema.ts";
import * as writes from "./writes.ts";

export const runs = {
  reads,
  writes,
  // Lost in a crash of the machine with the bytes that they stand for, which the sweep of the blobs finds; or with nothing at all.
  notDurable: ["fileBegin", "fileAbort", "blobsForget", "blobsDefer", "runsMeter"],
  snapshots: ["runTotalsWrong"],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type RunStore = Slice<typeof runs>;
