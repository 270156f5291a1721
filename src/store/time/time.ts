/** The domain of seen time (std/seen-clock.ts): one row, which all processes of a store move on. */
import type { DomainOf, Slice } from "../domain.ts";
import { MIGRATIONS } from "./schema.ts";
import * as writes from "./writes.ts";

export const time = {
  reads: {},
  writes,
  // After a loss of power the time of the last seconds was not seen: what is kept is kept a little longer.
  notDurable: ["timeKeep"],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<Record<never, never>, typeof writes>;

export type TimeStore = Slice<typeof time>;
