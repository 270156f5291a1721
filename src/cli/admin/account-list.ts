/** `tendon admin account list`. */
import type { Problem } from "../../error/problem.ts";
import { printable } from "../../std/printable.ts";
import { table } from "../../std/text-table.ts";
import { usdText } from "../../std/usd.ts";
import type { Account } from "../../store/accounts/records.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notRead, STORE_FLAGS, withStore } from "../frame/store.ts";

export const accountList: Command = {
  name: "admin account list",
  summary: "Lists every account with its money, in US dollars.",
  flags: STORE_FLAGS,
  run,
};

async function run(given: Given): Promise<number | Problem> {
  return await withStore(given, "refuse", async (store) => {
    const accounts = await store.accounts.list();
    if (accounts instanceof StoreDown) return notRead(accounts);
    const data = accounts.map(shown);
    const head = ["id", "e-mail", "credits", "settled", "held", "balance", "available", "spend limit", "pays later"];
    const rows = data.map((one) => [
      one.id,
      printable(one.email),
      ...[one.credits, one.settled, one.held, one.balance, one.available, one.spend_limit ?? "none"],
      one.payment_method ? "yes" : "no",
    ]);
    const text = table([head, ...rows], ["left", "left", "right", "right", "right", "right", "right", "right", "left"]);
    return answer(given, { data }, data.length === 0 ? "there are no accounts" : text);
  });
}

/** An account as the interface has it. */
function shown({ id, email, credits, settled, held, spendLimit, paymentMethod }: Account) {
  return {
    id,
    email,
    credits: usdText(credits),
    settled: usdText(settled),
    held: usdText(held),
    balance: usdText(credits - settled),
    available: usdText(credits - settled - held),
    spend_limit: spendLimit === undefined ? null : usdText(spendLimit),
    payment_method: paymentMethod,
  };
}
