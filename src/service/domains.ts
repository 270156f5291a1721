/** The domains of the store. A new surface adds its domain here, and its tables to store/schema.ts. */
import { accounts } from "../account/store/accounts.ts";
import { people } from "../account/store/people.ts";
import { charges } from "../charge/store/charges.ts";
import { llm } from "../llm/store/llm.ts";
import { robot } from "../robot/store/robot.ts";
import { runs } from "../runs/store/runs.ts";
import { base } from "../store/base.ts";
import type { StoreOf } from "../store/store.ts";

export const DOMAINS = { base, accounts, people, charges, robot, llm, runs };

export type Store = StoreOf<typeof DOMAINS>;
