/** `tendon admin …`: accounts, keys and money on the store directly, also while a service runs. */
import { accountCreate, accountList } from "./admin/account-create.ts";
import { accountLink } from "./admin/account-link.ts";
import { credit, limit } from "./admin/credit.ts";
import { keyCreate, keyList, keyRevoke } from "./admin/key-create.ts";
import { ledgerCheck } from "./admin/ledger-check.ts";
import type { CommandGroup } from "./frame/group.ts";

export const admin: CommandGroup = {
  name: "admin",
  summary: "Accounts, keys and money, on the store directly; also while a service runs.",
  commands: [accountCreate, accountList, accountLink, keyCreate, keyList, keyRevoke, credit, limit, ledgerCheck],
};
