/** Which account `--account` means. */

import { Problem } from "../../error/problem.ts";
import type { Store } from "../../service/domains.ts";
import { printable } from "../../std/printable.ts";
import type { Account } from "../../store/accounts/records.ts";
import { StoreDown } from "../../store/store.ts";
import { notRead } from "./store.ts";

export const ACCOUNT_FLAG = { value: "A", about: "The account: its id or its e-mail." };

/** The account of that id or e-mail. */
export async function accountNamed(store: Pick<Store, "accounts">, name: string): Promise<Account | Problem> {
  const found = await (name.includes("@")
    ? store.accounts.accountByEmail(name.toLowerCase())
    : store.accounts.accountById(name));
  if (found instanceof StoreDown) return notRead(found);
  return found ?? accountUnknown(name);
}

export function accountUnknown(name: string): Problem {
  return new Problem(`there is no account '${printable(name)}'; see: tendon admin account list`);
}
