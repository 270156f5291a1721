/** `tendon admin key list`. */
import { keyPrefix } from "../../account/key.ts";
import { Problem } from "../../error/problem.ts";
import { printable } from "../../std/printable.ts";
import { table } from "../../std/text-table.ts";
import type { KeyRecord } from "../../store/accounts/records.ts";
import { StoreDown } from "../../store/store.ts";
import { ACCOUNT_FLAG, accountNamed } from "../frame/account.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notRead, STORE_FLAGS, withStore } from "../frame/store.ts";
import { needed } from "../frame/values.ts";

export const keyList: Command = {
  name: "admin key list",
  summary: "Lists the account's keys, the revoked ones too.",
  flags: { account: ACCOUNT_FLAG, ...STORE_FLAGS },
  run,
};

async function run(given: Given): Promise<number | Problem> {
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
