/** `tendon admin account create`. */
import { readEmail } from "../../account/email.ts";
import { EXIT, Problem } from "../../error/problem.ts";
import { LIMITS } from "../../limits.ts";
import { systemClock } from "../../std/clock.ts";
import { makeId } from "../../std/ids.ts";
import { printable } from "../../std/printable.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notWritten, now, STORE_FLAGS, withStore } from "../frame/store.ts";
import { amountOf, needed } from "../frame/values.ts";

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
  run,
};

async function run(given: Given): Promise<number | Problem> {
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
