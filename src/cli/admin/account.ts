/** `tendon admin account create` and `account list`, and which account `--account` means. */
import { readEmail } from "../../account/email.ts";
import { EXIT, Problem } from "../../error/problem.ts";
import { LIMITS } from "../../limits.ts";
import type { Store } from "../../service/domains.ts";
import { systemClock } from "../../std/clock.ts";
import { makeId } from "../../std/ids.ts";
import { usdText } from "../../std/usd.ts";
import type { Account } from "../../store/accounts/records.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, Given } from "../command.ts";
import { printable } from "../print.ts";
import { table } from "../table.ts";
import { amountOf } from "./amount.ts";
import { answer, needed, notRead, notWritten, now, STORE_FLAGS, withStore } from "./beside.ts";

export const ACCOUNT_FLAG = { value: "A", about: "The account: its id or its e-mail." };

export const accountCreate: Command = {
  name: "admin account create",
  summary: "Makes an account; the data folder too, if there is none.",
  flags: {
    email: { value: "E", about: "Its e-mail; kept in lower case." },
    credit: { value: "USD", about: "Credit from the start (default 0)." },
    "spend-limit": { value: "USD", about: "The most that it may spend in a month (default: no limit)." },
    "payment-method": { about: "It pays later: it may have keys before it has credit." },
    ...STORE_FLAGS,
  },
  run: create,
};

export const accountList: Command = {
  name: "admin account list",
  summary: "Lists every account with its money, in US dollars.",
  flags: STORE_FLAGS,
  run: list,
};

async function create(given: Given): Promise<number | Problem> {
  const typed = needed(accountCreate, given, "email");
  if (typed instanceof Problem) return typed;
  const email = emailOf(typed);
  if (email instanceof Problem) return email;
  const credit = amountOf(given.text("credit") ?? "0", "credit", "not negative");
  if (credit instanceof Problem) return credit;
  const limit = given.text("spend-limit");
  const spendLimit = limit === undefined ? undefined : amountOf(limit, "spend-limit", "not negative");
  if (spendLimit instanceof Problem) return spendLimit;
  const paymentMethod = given.on("payment-method");
  return await withStore(given, "make", async (store) => {
    const id = makeId("acct_", systemClock);
    const account = { id, email, createdAt: now(), credit, spendLimit, paymentMethod, password: undefined };
    const added = await store.accounts.accountAdd(account);
    if (added instanceof StoreDown) return notWritten(added, "the account was made", "account list");
    if (added === "email_taken") {
      return new Problem(`${email} has an account already; see: tendon admin account list`);
    }
    const next = credit > 0n || paymentMethod ? "key create" : "credit";
    return answer(given, { id, email }, `made ${id} (${email})\nnext: tendon admin ${next} --account ${email}`);
  });
}

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

async function list(given: Given): Promise<number | Problem> {
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
