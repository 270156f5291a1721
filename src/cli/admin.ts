/** `tendon admin …`: accounts, keys and money on the store directly, also while a service runs. */
import { accountCreate, accountLink, accountList } from "./admin/accounts.ts";
import { keyCreate, keyList, keyRevoke } from "./admin/keys.ts";
import { credit, ledgerCheck, limit } from "./admin/money.ts";
import type { CommandGroup } from "./frame/group.ts";

export const admin: CommandGroup = {
  name: "admin",
  summary: "Accounts, keys and money, on the store directly; also while a service runs.",
  commands: [accountCreate, accountList, accountLink, keyCreate, keyList, keyRevoke, credit, limit, ledgerCheck],
};
