/** `tendon admin account link` and `reset`: one-time links that set a password. */
import { Passwords } from "../../account/password.ts";
import { makeToken, sha256 } from "../../account/secret.ts";
import { serviceUrl } from "../../client/sign-in.ts";
import { LIMITS } from "../../limits.ts";
import type { Store } from "../../service/domains.ts";
import { Problem } from "../../std/problem.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, CommandLine } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { ACCOUNT_FLAG, notRead, now, STORE_FLAGS, withAccount } from "./store.ts";

const BASE_FLAG = {
  value: "URL",
  about: "The service as its user reaches it (default: TENDON_BASE_URL, this machine).",
} as const;

/** A link that is not stored yet. Links last for seen time, which goes on where a service has stopped. */
async function newLink(store: Store, accountId: string, given: CommandLine) {
  const base = serviceUrl(given.text("base-url"), undefined);
  if (base instanceof Problem) return base;
  const [token, at] = [makeToken(), now()];
  const seen = await store.base.timeBegin({ seconds: at });
  if (seen instanceof StoreDown) return notRead(seen);
  const expiresAt = seen + LIMITS.linkSeconds;
  // Only the hash is stored: a reader of the database cannot use the link.
  const link = { tokenSha256: sha256(token), kind: "password", accountId, expiresAt } as const;
  return { link, at, url: `${base}/welcome?token=${token}`, expires_at: at + LIMITS.linkSeconds };
}

export const accountLink: Command = {
  name: "admin account link",
  summary: "Make a one-time link, good for 24 hours, that sets the account's password.",
  flags: {
    account: ACCOUNT_FLAG,
    "base-url": BASE_FLAG,
    ...STORE_FLAGS,
  },
  async run(given) {
    return await withAccount(given, async (store, { id: accountId, email }) => {
      const made = await newLink(store, accountId, given);
      if (made instanceof Problem) return made;
      const { link, url, expires_at } = made;
      const added = await store.people.linkAdd(link);
      if (added instanceof StoreDown) {
        // Unlike other writes, it need not be looked up: a link that nobody has seen does no harm.
        const outcome = added.outcomeUnknown ? "it is not known whether a link was made" : "no link was made";
        return new Problem(`${outcome}: ${added.reason}; once the store works, make another`);
      }
      return answer(given, { url, expires_at }, `${url}\ngood once, within 24 hours, for ${email}`);
    });
  },
};

export const accountReset: Command = {
  name: "admin account reset",
  summary: "End the account's password and sign-ins at once, and make a one-time link that sets a new password.",
  flags: {
    account: ACCOUNT_FLAG,
    "revoke-keys": { about: "Revoke the keys too; without this flag the page of the link asks." },
    "base-url": BASE_FLAG,
    ...STORE_FLAGS,
  },
  async run(given) {
    return await withAccount(given, async (store, { id: accountId, email }) => {
      const keys = await store.accounts.keysOf(accountId);
      if (keys instanceof StoreDown) return notRead(keys);
      // No text is known that has this hash; an account without a password could be taken by a link for the operator's.
      const password = await new Passwords().hash(makeToken(), "");
      const revokeKeys = given.on("revoke-keys");
      const made = await newLink(store, accountId, given);
      if (made instanceof Problem) return made;
      const { link, at, url, expires_at } = made;
      const reset = await store.people.passwordReset({ link, password, revokeKeys, now: at });
      if (reset instanceof StoreDown) {
        const outcome = reset.outcomeUnknown ? "it is not known whether the password was reset" : "nothing was changed";
        return new Problem(`${outcome}: ${reset.reason}; once the store works, reset it again`);
      }
      const valid = revokeKeys ? 0 : keys.filter(({ revokedAt }) => revokedAt === undefined).length;
      const left =
        valid === 0 ? "it has no valid key" : `its ${valid} keys still work: the page of the link asks about them`;
      const text = `${url}\ngood once, within 24 hours, for ${email}; its password and sign-ins have ended, ${left}`;
      return answer(given, { account: accountId, url, expires_at, keys: valid }, text);
    });
  },
};
