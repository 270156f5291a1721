/** `tendon admin limit`. */
import { Problem } from "../../error/problem.ts";
import { usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import { ACCOUNT_FLAG, accountNamed, accountUnknown } from "../frame/account.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notWritten, STORE_FLAGS, withStore } from "../frame/store.ts";
import { amountOf, needed } from "../frame/values.ts";

export const limit: Command = {
  name: "admin limit",
  summary: "Sets the most that the account may spend in a month (UTC).",
  flags: { account: ACCOUNT_FLAG, usd: { value: "N|none", about: "US dollars, or none." }, ...STORE_FLAGS },
  run,
};

async function run(given: Given): Promise<number | Problem> {
  const name = needed(limit, given, "account");
  if (name instanceof Problem) return name;
  const usd = needed(limit, given, "usd");
  if (usd instanceof Problem) return usd;
  const amount = usd === "none" ? undefined : amountOf(usd, "usd", "not negative", ", or none");
  if (amount instanceof Problem) return amount;
  return await withStore(given, "refuse", async (store) => {
    const account = await accountNamed(store, name);
    if (account instanceof Problem) return account;
    const changed = await store.accounts.spendLimit({ accountId: account.id, limit: amount });
    if (changed instanceof StoreDown) return notWritten(changed, "the limit was set", "account list");
    if (changed === "account_unknown") return accountUnknown(name);
    const spendLimit = amount === undefined ? null : usdText(amount);
    const text = `${account.email}: ${spendLimit === null ? "no spend limit" : `at most ${spendLimit} USD a month`}`;
    return answer(given, { account: account.id, spend_limit: spendLimit }, text);
  });
}
