/** `tendon admin account link`: a one-time link with which a person sets the account's password. */
import { makeToken, sha256 } from "../../account/secret.ts";
import { serviceUrl } from "../../client/sign-in.ts";
import { Problem } from "../../error/problem.ts";
import { LIMITS } from "../../limits.ts";
import { StoreDown } from "../../store/store.ts";
import { ACCOUNT_FLAG, accountNamed } from "../frame/account.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { now, STORE_FLAGS, withStore } from "../frame/store.ts";
import { needed } from "../frame/values.ts";

export const accountLink: Command = {
  name: "admin account link",
  summary: "Makes a one-time link, good for 24 hours, that sets the account's password.",
  flags: {
    account: ACCOUNT_FLAG,
    "base-url": { value: "URL", about: "The service as its user reaches it (default: TENDON_BASE_URL, this machine)." },
    ...STORE_FLAGS,
  },
  run,
};

async function run(given: Given): Promise<number | Problem> {
  const name = needed(accountLink, given, "account");
  if (name instanceof Problem) return name;
  const base = serviceUrl(given.text("base-url"), undefined);
  if (base instanceof Problem) return base;
  return await withStore(given, "refuse", async (store) => {
    const account = await accountNamed(store, name);
    if (account instanceof Problem) return account;
    const token = makeToken();
    const expiresAt = now() + LIMITS.linkSeconds;
    const added = await store.people.linkAdd({
      // Only the hash is stored: a reader of the database cannot use the link.
      tokenSha256: sha256(token),
      kind: "password",
      accountId: account.id,
      expiresAt,
    });
    if (added instanceof StoreDown) {
      // Unlike other writes, it need not be looked up: a link that nobody has seen does no harm.
      const outcome = added.outcomeUnknown ? "it is not known whether a link was made" : "no link was made";
      return new Problem(`${outcome}: ${added.reason}; once the store works, make another`);
    }
    const url = `${base}/welcome?token=${token}`;
    return answer(given, { url, expires_at: expiresAt }, `${url}\ngood once, within 24 hours, for ${account.email}`);
  });
}
