/** The domains of the store. A new surface with tables of its own adds its domain here, and nowhere else outside of its folders. */
import { accounts } from "../store/accounts/accounts.ts";
import { charges } from "../store/charges/charges.ts";
import { llm } from "../store/llm/llm.ts";
import { people } from "../store/people/people.ts";
import { probe } from "../store/probe/probe.ts";
import { robot } from "../store/robot/robot.ts";
import { runs } from "../store/runs/runs.ts";
import type { StoreOf } from "../store/store.ts";
import { time } from "../store/time/time.ts";

export const DOMAINS = { accounts, people, charges, robot, llm, runs, time, probe };

export type Store = StoreOf<typeof DOMAINS>;
