/** `tendon admin key revoke`. */
import { keyPrefix, publicIdOf } from "../../account/key.ts";
import { Problem } from "../../error/problem.ts";
import { StoreDown } from "../../store/store.ts";
import { type Command, type Given, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notWritten, now, STORE_FLAGS, withStore } from "../frame/store.ts";

export const keyRevoke: Command = {
  name: "admin key revoke",
  summary: "Ends a key for good, on every node within a second.",
  positionals: "PREFIX",
  flags: STORE_FLAGS,
  run,
};

async function run(given: Given): Promise<number | Problem> {
  const [typed, ...rest] = given.positionals;
  if (typed === undefined || rest.length > 0) {
    return usageProblem(keyRevoke, "expected one PREFIX, as 'tendon admin key list' shows it");
  }
  // No key has an empty id: a text that is no prefix is answered below like one that is not found.
  const publicId = publicIdOf(typed) ?? "";
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
}
