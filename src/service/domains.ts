/** The domains of the store. A new surface with tables of its own adds its domain here, and nowhere else outside of its folders. */
import { accounts } from "../account/store/accounts-accounts.ts";
import { people } from "../account/store/people-people.ts";
import { charges } from "../charge/store/charges.ts";
import { llm } from "../llm/store/llm.ts";
import { robot } from "../robot/store/robot.ts";
import { runs } from "../runs/store/runs.ts";
import { base } from "../store/base.ts";
import type { StoreOf } from "../store/domain.ts";

/** In the order of their migrations: a table that another one refers to comes first. */
export const DOMAINS = { base, accounts, people, charges, robot, llm, runs };

export type Store = StoreOf<typeof DOMAINS>;
