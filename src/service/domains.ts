/** The domains of the store of this program, a line each, and its base. */
import { accounts } from "../account/store/accounts.ts";
import { people } from "../account/store/people.ts";
import { charges } from "../charge/store/charges.ts";
import { llm } from "../llm/store/llm.ts";
import { robot } from "../robot/store/robot.ts";
import { runs } from "../runs/store/runs.ts";
import { base } from "../store/base.ts";
import type { StoreOf } from "../store/domain.ts";

export const DOMAINS = { base, accounts, charges, llm, people, robot, runs };

export type Store = StoreOf<typeof DOMAINS>;
