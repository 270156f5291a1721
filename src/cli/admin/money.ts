/** `tendon admin credit`, `limit` and `ledger check`. */
import { assert } from "../../std/assert.ts";
import { monthOf } from "../../std/calendar.ts";
import { systemClock } from "../../std/clock.ts";
import { makeId } from "../../std/ids.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { amountOf } from "../frame/values.ts";
import { ACCOUNT_FLAG, accountNamed, notRead, notWritten, now, STORE_FLAGS, withAccount, withStore } from "./store.ts";

export const credit: Command = {
  name: "admin credit",
  summary: "Add credit, or take it back if the amount is negative.",
  flags: {
    account: ACCOUNT_FLAG,
    usd: { value: "N", about: "US dollars, such as 10 or -2.5.", required: true },
    unverified: { about: "Also to an account of an open sign-up, whose e-mail nobody has confirmed." },
    ...STORE_FLAGS,
  },
  async run(given) {
    const amount = amountOf(given.required("usd"), "usd", "not zero");
    if (amount instanceof Problem) return amount;
    return await withAccount(given, async (store, { id, email, verified }) => {
      if (!verified && amount > 0n && !given.on("unverified")) {
        return new Problem(
          `nothing was booked: no operator has confirmed the e-mail ${printable(email)}. ` +
            `Confirm it with 'tendon admin account set --account ${id} --verified on', or add --unverified`,
        );
      }
      const at = now();
      const transferId = makeId("cr_", systemClock);
      const paid = await store.charges.credit({ accountId: id, transferId, amount, at, month: monthOf(at) });
      if (paid instanceof StoreDown) return notWritten(paid, "the credit was booked", "account list");
      assert(paid !== "account_unknown", "no account is ever removed");
      const after = await accountNamed(store, id);
      if (after instanceof Problem) {
        return new Problem(
          `the credit was booked, do not repeat it; only the new balance is not known: ${after.message}`,
        );
      }
      const credits = usdText(after.credits);
      const balance = usdText(after.credits - after.settled);
      const text = `${email}: ${usdText(amount)} USD booked; credits ${credits}, balance ${balance}`;
      return answer(given, { account: id, credits, balance }, text);
    });
  },
};

export const limit: Command = {
  name: "admin limit",
  summary: "Set the most that the account may spend in a month (UTC).",
  flags: {
    account: ACCOUNT_FLAG,
    usd: { value: "N|none", about: "US dollars, or none.", required: true },
    ...STORE_FLAGS,
  },
  async run(given) {
    const usd = given.required("usd");
    const amount = usd === "none" ? undefined : amountOf(usd, "usd", "not negative", ", or none");
    if (amount instanceof Problem) return amount;
    return await withAccount(given, async (store, { id, email }) => {
      const changed = await store.accounts.spendLimit({ accountId: id, limit: amount });
      if (changed instanceof StoreDown) return notWritten(changed, "the limit was set", "account list");
      assert(changed !== "account_unknown", "no account is ever removed");
      const spendLimit = amount === undefined ? null : usdText(amount);
      const text = `${email}: ${spendLimit === null ? "no spend limit" : `at most ${spendLimit} USD a month`}`;
      return answer(given, { account: id, spend_limit: spendLimit }, text);
    });
  },
};

export const ledgerCheck: Command = {
  name: "admin ledger check",
  summary: "Recompute every total from its entries and name the first wrong row; exit 1 if there is one.",
  flags: STORE_FLAGS,
  async run(given) {
    return await withStore(given, "refuse", async (store) => {
      const report = await store.charges.ledgerCheck();
      if (report instanceof StoreDown) return notRead(report);
      const { problem } = report;
      const ok = problem === undefined;
      const checked = { ok, entries: Number(report.entries), sum: usdText(report.sum), ...(ok ? {} : { problem }) };
      const verdict = ok ? "the ledger is sound:" : `the ledger is off: ${printable(problem)};`;
      await answer(given, checked, `${verdict} ${checked.entries} entries, sum ${checked.sum}`);
      return ok ? EXIT.done : EXIT.failed;
    });
  },
};
