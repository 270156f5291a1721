/** `tendon admin account create`, `list` and `set`. */
import { type Account, readEmail } from "../../account/store/accounts.ts";
import { LIMITS } from "../../limits.ts";
import { assert } from "../../std/assert.ts";
import { systemClock } from "../../std/clock.ts";
import { makeId } from "../../std/ids.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { table } from "../../std/text-table.ts";
import { usdText } from "../../std/usd.ts";
import { StoreDown } from "../../store/store.ts";
import { type Command, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { amountOf, switchOf } from "../frame/values.ts";
import { ACCOUNT_FLAG, notRead, notWritten, now, STORE_FLAGS, withAccount, withStore } from "./store.ts";

export const accountCreate: Command = {
  name: "admin account create",
  summary: "Make an account; the data folder too, if there is none.",
  flags: {
    email: { value: "E", about: "Its e-mail; kept in lower case.", required: true },
    credit: { value: "USD", about: "Credit from the start (default 0)." },
    "spend-limit": { value: "USD", about: "The most that it may spend in a month (default: no limit)." },
    "payment-method": { about: "The account pays later: it may have keys before it has credit." },
    ...STORE_FLAGS,
  },
  async run(given) {
    const email = emailOf(given.required("email"));
    if (email instanceof Problem) return email;
    const credit = amountOf(given.text("credit") ?? "0", "credit", "not negative");
    if (credit instanceof Problem) return credit;
    const limit = given.text("spend-limit");
    const spendLimit = limit === undefined ? undefined : amountOf(limit, "spend-limit", "not negative");
    if (spendLimit instanceof Problem) return spendLimit;
    const paymentMethod = given.on("payment-method");
    return await withStore(given, "make", async (store) => {
      const id = makeId("acct_", systemClock);
      const account = { id, email, createdAt: now(), credit, spendLimit, paymentMethod, verified: true };
      const added = await store.accounts.accountAdd(account);
      if (added instanceof StoreDown) return notWritten(added, "the account was made", "account list");
      if (added === "email_taken") {
        return new Problem(`${email} has an account already; see: tendon admin account list`);
      }
      const next = credit > 0n || paymentMethod ? "key create" : "credit";
      return answer(given, { id, email }, `made ${id} (${email})\nnext: tendon admin ${next} --account ${email}`);
    });
  },
};

/** In lower case, so that one person has one account. */
function emailOf(text: string): string | Problem {
  return (
    readEmail(text) ??
    new Problem(
      `--email must be an e-mail such as robot@example.org, at most ${LIMITS.emailCharsMax} characters and without white space, ` +
        `not '${printable(text)}'`,
      EXIT.usage,
    )
  );
}

export const accountList: Command = {
  name: "admin account list",
  summary: "List every account with its money, in US dollars.",
  flags: STORE_FLAGS,
  async run(given) {
    return await withStore(given, "refuse", async (store) => {
      const accounts = await store.accounts.list();
      if (accounts instanceof StoreDown) return notRead(accounts);
      const data = accounts.map(shown);
      const head = [
        "id",
        "e-mail",
        "credits",
        "settled",
        "held",
        "balance",
        "available",
        "spend limit",
        "pays later",
        "confirmed",
      ];
      const rows = data.map((one, index) => [
        one.id,
        printable(one.email),
        ...[one.credits, one.settled, one.held, one.balance, one.available, one.spend_limit ?? "none"],
        one.payment_method ? "yes" : "no",
        accounts[index]?.verified ? "yes" : "no",
      ]);
      const align = head.map((_, column) => (column >= 2 && column <= 7 ? "right" : "left"));
      return answer(given, { data }, data.length === 0 ? "there are no accounts" : table([head, ...rows], align));
    });
  },
};

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

export const accountSet: Command = {
  name: "admin account set",
  summary: "Set or clear the account's payment method, and whether its e-mail is confirmed.",
  flags: {
    account: ACCOUNT_FLAG,
    "payment-method": { value: "on|off", about: "Whether it pays later: it may have keys before it has credit." },
    verified: {
      value: "on|off",
      about: "Whether you stand for its e-mail; nobody has checked that of an open sign-up.",
    },
    ...STORE_FLAGS,
  },
  async run(given) {
    const paymentMethod = switchOf(given, "payment-method");
    if (paymentMethod instanceof Problem) return paymentMethod;
    const verified = switchOf(given, "verified");
    if (verified instanceof Problem) return verified;
    if (paymentMethod === undefined && verified === undefined) {
      return usageProblem(accountSet, "nothing is to be set, expected --payment-method on|off or --verified on|off");
    }
    return await withAccount(given, async (store, account) => {
      const changed = await store.accounts.accountSet({ accountId: account.id, paymentMethod, verified });
      if (changed instanceof StoreDown) return notWritten(changed, "the account was changed", "account list");
      assert(changed !== "account_unknown", "no account is ever removed");
      const now = { ...account, ...(paymentMethod === undefined ? {} : { paymentMethod }) };
      const after = { ...now, ...(verified === undefined ? {} : { verified }) };
      const said = { account: account.id, payment_method: after.paymentMethod, verified: after.verified };
      const text = `${account.email}: ${after.paymentMethod ? "a" : "no"} payment method, e-mail ${after.verified ? "" : "not "}confirmed`;
      return answer(given, said, text);
    });
  },
};
