/** `tendon admin …`: accounts, keys, money and the check of runs, on the store directly, also while a service runs. */
import { accountCreate, accountList, accountSet } from "./admin/accounts.ts";
import { keyCreate, keyList, keyRevoke } from "./admin/keys.ts";
import { accountLink, accountReset } from "./admin/links.ts";
import { credit, ledgerCheck, limit } from "./admin/money.ts";
import { runsAdopt, runsCheck } from "./admin/runs.ts";
import type { CommandGroup } from "./frame/group.ts";

export const admin: CommandGroup = {
  name: "admin",
  summary: "Accounts, keys, money and the check of runs, on the store directly; also while a service runs.",
  commands: [
    accountCreate,
    accountList,
    accountSet,
    accountLink,
    accountReset,
    keyCreate,
    keyList,
    keyRevoke,
    credit,
    limit,
    ledgerCheck,
    runsCheck,
    runsAdopt,
  ],
};
