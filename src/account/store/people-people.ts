/** The domain of people: one-time links, sign-ins, device logins, throttling. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import * as reads from "./people-reads.ts";
import { MIGRATIONS } from "./people-schema.ts";
import * as writes from "./people-writes.ts";

export const people = {
  reads,
  writes,
  notDurable: ["attempt"],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type PeopleStore = Slice<typeof people>;
