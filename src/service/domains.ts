/** The store of this program: the domains of records.ts, and the base. */
import { base } from "../store/base.ts";
import type { StoreOf } from "../store/domain.ts";
import * as records from "./records.ts";

export const DOMAINS = { base, ...records };

export type Store = StoreOf<typeof DOMAINS>;
