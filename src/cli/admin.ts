/** `tendon admin …`: accounts, keys and money on the store directly, also while a service runs. */
import { accountCreate } from "./admin/account-create.ts";
import { accountLink } from "./admin/account-link.ts";
import { accountList } from "./admin/account-list.ts";
import { credit } from "./admin/credit.ts";
import { keyCreate } from "./admin/key-create.ts";
import { keyList } from "./admin/key-list.ts";
import { keyRevoke } from "./admin/key-revoke.ts";
import { ledgerCheck } from "./admin/ledger-check.ts";
import { limit } from "./admin/limit.ts";
import type { CommandGroup } from "./frame/group.ts";

export const admin: CommandGroup = {
  name: "admin",
  summary: "Accounts, keys and money, on the store directly; also while a service runs.",
  commands: [accountCreate, accountList, accountLink, keyCreate, keyList, keyRevoke, credit, limit, ledgerCheck],
};
