/** `tendon admin key create`, `list` and `revoke`. */
import { keyNameProblem, keyPrefix, newKey, publicIdOf } from "../../account/key.ts";
import type { KeyRecord } from "../../account/store/keys.ts";
import { assert } from "../../std/assert.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { table } from "../../std/text-table.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { timeText } from "../runs/amounts.ts";
import { ACCOUNT_FLAG, notRead, notWritten, now, STORE_FLAGS, withAccount, withStore } from "./store.ts";

export const keyCreate: Command = {
  name: "admin key create",
  summary: "Make an API key and print it, once.",
  flags: {
    account: ACCOUNT_FLAG,
    name: { value: "N", about: "What the key is for (default: tendon admin)." },
    ...STORE_FLAGS,
  },
  async run(given) {
    const name = given.text("name") ?? "tendon admin";
    const wrong = keyNameProblem(name);
    if (wrong) return new Problem(`--name: ${wrong}`, EXIT.usage);
    return await withAccount(given, async (store, { id, email }) => {
      const { key, record } = newKey(now());
      const added = await store.accounts.keyAdd({ ...record, accountId: id, name });
      if (added instanceof StoreDown) {
        return notWritten(added, "the key was made (nobody has seen it: revoke it)", `key list --account ${email}`);
      }
      assert(added !== "account_unknown", "no account is ever removed");
      if (added === "too_many")
        return new Problem(`${email} has as many keys as an account may have; revoke one first`);
      if (added === "payment_required") {
        return new Problem(
          `${email} needs a payment method or credit before a key can be created; give it credit with: ` +
            `tendon admin credit --account ${email} --usd N`,
        );
      }
      if (added === "id_taken") return new Problem("no key was made, its id is another key's; run the command again");
      const { publicId, createdAt } = record;
      const made = { id: publicId, prefix: keyPrefix(publicId), key, account: id, created_at: createdAt };
      return answer(given, made, `${key}\nshown this once; for ${email}, revoke it as ${made.prefix}`);
    });
  },
};

export const keyList: Command = {
  name: "admin key list",
  summary: "List the account's keys, the revoked ones too.",
  flags: { account: ACCOUNT_FLAG, ...STORE_FLAGS },
  async run(given) {
    return await withAccount(given, async (store, { id }) => {
      const keys = await store.accounts.keysOf(id);
      if (keys instanceof StoreDown) return notRead(keys);
      const data = keys.map(shown);
      if (data.length === 0) return answer(given, { data }, "the account has no keys");
      const rows = data.map((key) => [
        key.prefix,
        printable(key.name),
        ...[key.created_at, key.last_used_at, key.revoked_at].map((at) => (at === null ? "never" : timeText(at))),
      ]);
      return answer(given, { data }, table([["prefix", "name", "created", "last used", "revoked"], ...rows]));
    });
  },
};

function shown({ publicId, name, createdAt, lastUsedAt, revokedAt }: KeyRecord) {
  const times = { created_at: createdAt, last_used_at: lastUsedAt ?? null, revoked_at: revokedAt ?? null };
  return { id: publicId, prefix: keyPrefix(publicId), name, ...times };
}

export const keyRevoke: Command = {
  name: "admin key revoke",
  summary: "Revoke a key, on every node within a second.",
  positionals: "PREFIX",
  flags: STORE_FLAGS,
  async run(given) {
    // No key has an empty id: a text that is no prefix is answered below like one that is not found.
    const publicId = publicIdOf(given.word(0)) ?? "";
    return await withStore(given, "refuse", async (store) => {
      const revoked = await store.accounts.keyRevoke({ publicId, at: now() });
      if (revoked instanceof StoreDown) return notWritten(revoked, "the key was revoked", "key list --account A");
      const prefix = keyPrefix(publicId);
      if (revoked === "revoked") return answer(given, { revoked: true, prefix }, `revoked ${prefix}`);
      // The message must not repeat what was typed: it may be a whole key.
      return new Problem(
        "there is no key with that prefix; expected tdn_ and 12 characters, as 'tendon admin key list --account A' shows them",
      );
    });
  },
};
