/** `tendon admin …`: accounts, keys and money on the store directly, also while a service runs. */
import { accountCreate, accountList } from "./admin/account.ts";
import { keyCreate, keyList, keyRevoke } from "./admin/key.ts";
import { ledgerCheck } from "./admin/ledger.ts";
import { accountLink } from "./admin/link.ts";
import { credit, limit } from "./admin/money.ts";
import type { CommandGroup } from "./group.ts";

export const admin: CommandGroup = {
  name: "admin",
  summary: "Accounts, keys and money, on the store directly; also while a service runs.",
  commands: [accountCreate, accountList, accountLink, keyCreate, keyList, keyRevoke, credit, limit, ledgerCheck],
};
