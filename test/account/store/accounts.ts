/** Accounts, keys, and the store as a whole: tests that hold for each engine (store.test.ts). */
import { expect } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { type EngineName, place, storeTest } from "../../store/engines.ts";
import { AT, addAccount, expectSound, key, money, newCharge } from "../../store/rows.ts";
import { funded } from "../fake-store.ts";

export function accountsTests(engine: EngineName): void {
  const test = storeTest(engine);

  test("accounts and keys are kept over a restart, money as 64-bit integers", async (first, at) => {
    const money = { credit: 9_007_199_254_740_993n, spendLimit: 7n };
    await addAccount(first, money);
    expect(await first.accounts.keyAdd(key)).toBe("added");
    // A clock that was days ahead is set right again.
    for (const used of [777_777, 77, 66]) await first.accounts.keysUsed([{ publicId: key.publicId, at: used }]);
    await first.close();
    const second = await at.open();
    const { credit: credits, ...kept } = { ...funded("a1", "a1@example.org"), ...money };
    const account = { ...kept, credits, settled: 0n, held: 0n, month: 0, monthSettled: 0n };
    const record = { ...key, lastUsedAt: 77, revokedAt: undefined };
    expect([
      await second.accounts.accountByEmail("a1@example.org"),
      await second.accounts.accountById("a1"),
      await second.accounts.list(),
      await second.accounts.keyByPublicId(key.publicId),
      await second.accounts.keysOf("a1"),
      await second.accounts.keysOf("a2"),
    ]).toEqual([account, account, [account], record, [record], []]);
    await expectSound(second);
  });

  test("an operator sets and clears the payment method and whether an e-mail is confirmed, each alone", async (store) => {
    await addAccount(store, { verified: false });
    const after = async (set: object) => {
      expect(await store.accounts.accountSet({ accountId: "a1", ...set })).toBe("changed");
      const account = await store.accounts.accountById("a1");
      return account && "verified" in account ? [account.paymentMethod, account.verified] : account;
    };
    expect(await after({})).toEqual([false, false]);
    expect(await after({ paymentMethod: true })).toEqual([true, false]);
    expect(await after({ verified: true })).toEqual([true, true]);
    expect(await after({ paymentMethod: false })).toEqual([false, true]);
    expect(await after({ verified: false })).toEqual([false, false]);
    expect(await store.accounts.accountSet({ accountId: "a2", verified: true })).toBe("account_unknown");
  });

  test("what a caller may get wrong is an answer, and a repeat of what was done says what the first one said", async (store) => {
    const { accounts, charges } = store;
    expect(await accounts.keyAdd(key)).toBe("account_unknown");
    const poor = { ...funded("a1", "one@example.org"), credit: 0n };
    expect([await accounts.accountAdd(poor), await accounts.accountAdd(poor)]).toEqual(["added", "added"]);
    expect(await accounts.accountAdd({ ...poor, id: "a2" })).toBe("email_taken");
    expect(await accounts.keyAdd(key)).toBe("payment_required");
    const pay = { accountId: "a1", transferId: "t1", amount: 5n, at: AT, month: 202_611 };
    expect([await charges.credit(pay), await charges.credit(pay)]).toEqual(["credited", "credited"]);
    expect((await money(store)).credits).toBe(5n);
    expect([await accounts.keyAdd(key), await accounts.keyAdd(key)]).toEqual(["added", "added"]);
    expect(await accounts.keyAdd({ ...key, sha256: new Uint8Array(32) })).toBe("id_taken");
    expect(await accounts.keyRevoke({ publicId: "none", at: 9 })).toBe("unknown");
    expect(await accounts.keyByPublicId("none")).toBeUndefined();
    expect(await accounts.keyRevoke({ publicId: key.publicId, accountId: "a9", at: 9 })).toBe("unknown");
    expect(await charges.credit({ ...pay, accountId: "a9" })).toBe("account_unknown");
    expect(await accounts.spendLimit({ accountId: "a9", limit: 1n })).toBe("account_unknown");
    expect(await accounts.accountByEmail("nobody@example.org")).toBeUndefined();
  });

  test("a repeat of the last key that an account may have, or of one whose account has spent all since, says added", async (store) => {
    await addAccount(store);
    const nth = (index: number) => ({ ...key, publicId: `p${index}`.padEnd(12, "x") });
    const last = LIMITS.accountKeysMax - 1;
    for (let index = 0; index <= last; index += 1) expect(await store.accounts.keyAdd(nth(index))).toBe("added");
    const both = async () => [await store.accounts.keyAdd(nth(last)), await store.accounts.keyAdd(nth(last + 1))];
    expect(await both()).toEqual(["added", "too_many"]);
    await store.charges.credit({ accountId: "a1", transferId: "t1", amount: -(10n ** 15n), at: AT, month: 202_611 });
    expect(await both()).toEqual(["added", "payment_required"]);
    expect(await store.accounts.keyAdd({ ...nth(last), sha256: new Uint8Array(32) })).toBe("id_taken");
  });

  test("a key stays revoked at the moment of its first revocation, and each one changes the revision", async (store) => {
    await addAccount(store);
    await store.accounts.keyAdd(key);
    const before = await store.accounts.keysRevision();
    await store.accounts.keyRevoke({ publicId: key.publicId, accountId: "a1", at: 9 });
    await store.accounts.keyRevoke({ publicId: key.publicId, at: 99 });
    expect(await store.accounts.keyByPublicId(key.publicId)).toMatchObject({ revokedAt: 9 });
    expect(await store.accounts.keysRevision()).toBe((before as bigint) + 2n);
  });

  test("the keys that were used last come first, unused ones by when they were made; revoked ones do not come", async (store) => {
    await addAccount(store);
    const id = (letter: string) => letter.repeat(12);
    for (const [letter, createdAt] of Object.entries({ a: 10, b: 20, c: 30, d: 40 })) {
      const sha256 = new Uint8Array(32).fill(letter.charCodeAt(0));
      await store.accounts.keyAdd({ ...key, publicId: id(letter), sha256, createdAt });
    }
    await store.accounts.keysUsed([{ publicId: id("a"), at: 35 }]);
    await store.accounts.keyRevoke({ publicId: id("d"), at: 41 });
    expect(await store.accounts.keysRecent(2)).toEqual([id("a"), id("c")]);
  });

  test("the write of readiness can be repeated; a closed store answers StoreDown", async (store) => {
    expect(await store.ping()).toBeUndefined();
    expect(await store.base.probe()).toBe("kept");
    expect(await Promise.all([store.base.probe(), store.base.probe()])).toEqual(["kept", "kept"]);
    await store.close();
    const down = [
      await store.ping(),
      await store.base.probe(),
      await store.accounts.list(),
      await store.charges.hold(newCharge("r")),
      await store.accounts.spendLimit({ accountId: "a", limit: 1n }),
    ];
    expect(down).toEqual(down.map(() => expect.any(StoreDown)));
  });

  // SQLite has one server.
  if (engine === "SQLite") return;
  test("nodes that start at once bring the schema up to date once", async () => {
    await using at = await place(engine);
    const stores = await Promise.all([at.open(), at.open(), at.open(), at.open()]);
    await stores[0]?.accounts.accountAdd(funded("a1", "one@example.org"));
    expect(await stores[3]?.accounts.accountById("a1")).toMatchObject({ id: "a1" });
  });
}
