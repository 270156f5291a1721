/** The domains of the store, a line each. */
export { accounts } from "../account/store/accounts.ts";
export { people } from "../account/store/people.ts";
export { charges } from "../charge/store/charges.ts";
export { llm } from "../llm/store/llm.ts";
export { robot } from "../robot/store/robot.ts";
export { runs } from "../runs/store/runs.ts";
