/** `tendon admin key create`, `key list` and `key revoke`. */
import { keyDigest, keyNameProblem, keyPrefix, keyPublicId, makeKey, publicIdOf } from "../../account/key.ts";
import { EXIT, Problem } from "../../error/problem.ts";
import { present } from "../../std/assert.ts";
import type { KeyRecord } from "../../store/accounts/records.ts";
import { StoreDown } from "../../store/store.ts";
import { type Command, type Given, usageProblem } from "../command.ts";
import { printable } from "../print.ts";
import { table } from "../table.ts";
import { ACCOUNT_FLAG, accountNamed, accountUnknown } from "./account.ts";
import { answer, needed, notRead, notWritten, now, STORE_FLAGS, withStore } from "./beside.ts";

export const keyCreate: Command = {
  name: "admin key create",
  summary: "Makes an API key and prints it, this once.",
  flags: {
    account: ACCOUNT_FLAG,
    name: { value: "N", about: "What the key is for (default: tendon admin)." },
    ...STORE_FLAGS,
  },
  run: create,
};

export const keyList: Command = {
  name: "admin key list",
  summary: "Lists the account's keys, the revoked ones too.",
  flags: { account: ACCOUNT_FLAG, ...STORE_FLAGS },
  run: list,
};

export const keyRevoke: Command = {
  name: "admin key revoke",
  summary: "Ends a key for good, on every node within a second.",
  positionals: "PREFIX",
  flags: STORE_FLAGS,
  run: revoke,
};

async function create(given: Given): Promise<number | Problem> {
  const account = needed(keyCreate, given, "account");
  if (account instanceof Problem) return account;
  const name = given.text("name") ?? "tendon admin";
  const wrong = keyNameProblem(name);
  if (wrong) return new Problem(`--name: ${wrong}`, EXIT.usage);
  return await withStore(given, "refuse", async (store) => {
    const owner = await accountNamed(store, account);
    if (owner instanceof Problem) return owner;
    const key = makeKey();
    const publicId = present(keyPublicId(key), "the public id of a key that was just made");
    const createdAt = now();
    const record = { publicId, sha256: keyDigest(key), accountId: owner.id, name, createdAt };
    const added = await store.accounts.keyAdd(record);
    if (added instanceof StoreDown) {
      return notWritten(added, "the key was made (nobody has seen it: revoke it)", `key list --account ${owner.email}`);
    }
    if (added === "account_unknown") return accountUnknown(account);
    if (added === "too_many")
      return new Problem(`${owner.email} has as many keys as an account may have; revoke one first`);
    if (added === "payment_required") {
      return new Problem(
        `${owner.email} needs a payment method or credit before a key can be created; give it credit with: ` +
          `tendon admin credit --account ${owner.email} --usd N`,
      );
    }
    if (added === "id_taken") return new Problem("no key was made, its id is another key's; run the command again");
    const made = { id: publicId, prefix: keyPrefix(publicId), key, account: owner.id, created_at: createdAt };
    return answer(given, made, `${key}\nshown this once; for ${owner.email}, revoke it as ${made.prefix}`);
  });
}

async function list(given: Given): Promise<number | Problem> {
  const account = needed(keyList, given, "account");
  if (account instanceof Problem) return account;
  return await withStore(given, "refuse", async (store) => {
    const owner = await accountNamed(store, account);
    if (owner instanceof Problem) return owner;
    const keys = await store.accounts.keysOf(owner.id);
    if (keys instanceof StoreDown) return notRead(keys);
    return answer(given, { data: keys.map(shown) }, keysText(keys));
  });
}

function shown({ publicId, name, createdAt, lastUsedAt, revokedAt }: KeyRecord): object {
  return {
    id: publicId,
    prefix: keyPrefix(publicId),
    name,
    created_at: createdAt,
    last_used_at: lastUsedAt ?? null,
    revoked_at: revokedAt ?? null,
  };
}

function keysText(keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return "the account has no keys";
  const time = (at: number | undefined) =>
    at === undefined ? "never" : new Date(at * 1000).toISOString().replace(".000", "");
  const rows = keys.map(({ publicId, name, createdAt, lastUsedAt, revokedAt }) => [
    keyPrefix(publicId),
    printable(name),
    ...[createdAt, lastUsedAt, revokedAt].map(time),
  ]);
  return table([["prefix", "name", "created", "last used", "revoked"], ...rows]);
}

async function revoke(given: Given): Promise<number | Problem> {
  const [typed, ...rest] = given.positionals;
  if (typed === undefined || rest.length > 0) {
    return usageProblem(keyRevoke, "expected one PREFIX, as 'tendon admin key list' shows it");
  }
  // A text that is no prefix is looked for as it is, and not found.
  const publicId = publicIdOf(typed) ?? "";
  return await withStore(given, "refuse", async (store) => {
    const revoked = await store.accounts.keyRevoke({ publicId, at: now() });
    if (revoked instanceof StoreDown) return notWritten(revoked, "the key was revoked", "key list --account A");
    const prefix = keyPrefix(publicId);
    if (revoked === "revoked") return answer(given, { revoked: true, prefix }, `revoked ${prefix}`);
    // What was typed is not said again: it may be a whole key.
    return new Problem(
      "there is no key with that prefix; expected tdn_ and 12 characters, as 'tendon admin key list --account A' shows them",
    );
  });
}
