/** `tendon admin key create`. */
import { keyDigest, keyNameProblem, keyPrefix, keyPublicId, makeKey } from "../../account/key.ts";
import { EXIT, Problem } from "../../error/problem.ts";
import { present } from "../../std/assert.ts";
import { StoreDown } from "../../store/store.ts";
import { ACCOUNT_FLAG, accountNamed, accountUnknown } from "../frame/account.ts";
import type { Command, Given } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notWritten, now, STORE_FLAGS, withStore } from "../frame/store.ts";
import { needed } from "../frame/values.ts";

export const keyCreate: Command = {
  name: "admin key create",
  summary: "Makes an API key and prints it, this once.",
  flags: {
    account: ACCOUNT_FLAG,
    name: { value: "N", about: "What the key is for (default: tendon admin)." },
    ...STORE_FLAGS,
  },
  run,
};

async function run(given: Given): Promise<number | Problem> {
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
