/** `tendon admin credit`. */
import { Problem } from "../../error/problem.ts";
import { monthOf } from "../../std/calendar.ts";
import { systemClock } from "../../std/clock.ts";
import { makeId } from "../../std/ids.ts";
import { usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import { ACCOUNT_FLAG, accountNamed, accountUnknown } from "../frame/account.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notWritten, now, STORE_FLAGS, withStore } from "../frame/store.ts";
import { amountOf, needed } from "../frame/values.ts";

export const credit: Command = {
  name: "admin credit",
  summary: "Pays credit in, or takes it back where the amount is negative.",
  flags: { account: ACCOUNT_FLAG, usd: { value: "N", about: "US dollars, such as 10 or -2.5." }, ...STORE_FLAGS },
  run,
};

async function run(given: Given): Promise<number | Problem> {
  const name = needed(credit, given, "account");
  if (name instanceof Problem) return name;
  const usd = needed(credit, given, "usd");
  if (usd instanceof Problem) return usd;
  const amount = amountOf(usd, "usd", "not zero");
  if (amount instanceof Problem) return amount;
  return await withStore(given, "refuse", async (store) => {
    const account = await accountNamed(store, name);
    if (account instanceof Problem) return account;
    const at = now();
    const transferId = makeId("cr_", systemClock);
    const paid = await store.charges.credit({ accountId: account.id, transferId, amount, at, month: monthOf(at) });
    if (paid instanceof StoreDown) return notWritten(paid, "the credit was booked", "account list");
    if (paid === "account_unknown") return accountUnknown(name);
    const after = await accountNamed(store, account.id);
    if (after instanceof Problem) {
      return new Problem(
        `the credit was booked, do not repeat it; only the new balance is not known: ${after.message}`,
      );
    }
    const credits = usdText(after.credits);
    const balance = usdText(after.credits - after.settled);
    const text = `${account.email}: ${usdText(amount)} USD booked; credits ${credits}, balance ${balance}`;
    return answer(given, { account: account.id, credits, balance }, text);
  });
}
