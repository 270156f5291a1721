/** Further accounts of a measured service, made in its store. */
import { newKey } from "../src/account/key.ts";
import { monthOf } from "../src/std/calendar.ts";
import { systemClock } from "../src/std/clock.ts";
import { makeId } from "../src/std/ids.ts";
import { Problem } from "../src/std/problem.ts";
import type { Measured } from "./ledger.ts";

/** Nano-dollars. A chunk costs nothing here, but an account without credit may not ask for one. */
const CREDIT = 1_000_000_000n;

/** The key of a new account. `isSpent`: its credit is gone once the key is made. */
export async function addAccount(
  beside: Measured["beside"],
  name: string,
  { isSpent = false } = {},
): Promise<string | Problem> {
  const store = await beside();
  if (store instanceof Problem) return store;
  try {
    const id = makeId("acct_", systemClock);
    const createdAt = Math.floor(systemClock.unixMs() / 1000);
    const account = { id, email: `${name}@localhost`, createdAt, credit: CREDIT, paymentMethod: false, verified: true };
    const added = await store.accounts.accountAdd(account);
    if (added !== "added") return new Problem(`the account of ${name} was not added: ${JSON.stringify(added)}`);
    const { key, record } = newKey(createdAt);
    const kept = await store.accounts.keyAdd({ ...record, accountId: id, name });
    if (kept !== "added") return new Problem(`the key of ${name} was not added: ${JSON.stringify(kept)}`);
    if (!isSpent) return key;
    const transfer = { accountId: id, transferId: `${id} spent`, amount: -CREDIT, at: createdAt };
    const gone = await store.charges.credit({ ...transfer, month: monthOf(createdAt) });
    return gone === "credited" ? key : new Problem(`the credit of ${name} was not spent: ${JSON.stringify(gone)}`);
  } finally {
    await store.close();
  }
}
