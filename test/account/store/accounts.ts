/** Accounts, keys, and the store as a whole: tests that hold for each engine (store.test.ts). */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { type EngineName, place } from "../../store/engines.ts";
import { AT, expectSound, key, money, newCharge } from "../../store/rows.ts";
import { funded } from "../fake-store.ts";

export function accountsTests(engine: EngineName): void {
  test("accounts and keys are kept over a restart, money as 64-bit integers", async () => {
    await using at = await place(engine);
    const first = await at.open();
    const credit = 9_007_199_254_740_993n;
    expect(await first.accounts.accountAdd({ ...funded("a1", "one@example.org"), credit, spendLimit: 7n })).toBe(
      "added",
    );
    expect(await first.accounts.keyAdd(key)).toBe("added");
    // A clock that was days ahead is set right again.
    await first.accounts.keysUsed([{ publicId: key.publicId, at: 777_777 }]);
    await first.accounts.keysUsed([{ publicId: key.publicId, at: 77 }]);
    await first.accounts.keysUsed([{ publicId: key.publicId, at: 66 }]);
    await first.close();
    const second = await at.open();
    const account = {
      id: "a1",
      email: "one@example.org",
      createdAt: 0,
      paymentMethod: false,
      credits: credit,
      settled: 0n,
      held: 0n,
      spendLimit: 7n,
      verified: true,
      month: 0,
      monthSettled: 0n,
      password: undefined,
    };
    const record = { ...key, lastUsedAt: 77, revokedAt: undefined };
    expect([
      await second.accounts.accountByEmail("one@example.org"),
      await second.accounts.accountById("a1"),
      await second.accounts.list(),
      await second.accounts.keyByPublicId(key.publicId),
      await second.accounts.keysOf("a1"),
      await second.accounts.keysOf("a2"),
    ]).toEqual([account, account, [account], record, [record], []]);
    await expectSound(second);
  });

  test("an operator sets and clears the payment method and whether an e-mail is confirmed, each alone", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd({ ...funded("a1", "one@example.org"), verified: false });
    const after = async (set: object) => {
      expect(await store.accounts.accountSet({ accountId: "a1", ...set })).toBe("changed");
      const account = await store.accounts.accountById("a1");
      return account && "verified" in account ? [account.paymentMethod, account.verified] : account;
    };
    expect([
      await after({}),
      await after({ paymentMethod: true }),
      await after({ verified: true }),
      await after({ paymentMethod: false }),
      await after({ verified: false }),
    ]).toEqual([
      [false, false],
      [true, false],
      [true, true],
      [false, true],
      [false, false],
    ]);
    expect(await store.accounts.accountSet({ accountId: "a2", verified: true })).toBe("account_unknown");
  });

  test("all keys of an account are revoked at once, and no other account's", async () => {
    await using at = await place(engine);
    const store = await at.open();
    for (const id of ["a1", "a2"]) await store.accounts.accountAdd(funded(id, `${id}@example.org`));
    const keys = [key, { ...key, publicId: "q".repeat(12) }, { ...key, publicId: "r".repeat(12), accountId: "a2" }];
    for (const one of keys) await store.accounts.keyAdd(one);
    const before = await store.accounts.keysRevision();
    await store.accounts.keyRevoke({ publicId: key.publicId, at: AT });
    expect(await store.accounts.keysRevoke({ accountId: "a1", at: AT + 5 })).toBe("revoked");
    const found = await Promise.all(keys.map(({ publicId }) => store.accounts.keyByPublicId(publicId)));
    expect(found.map((one) => (one && "revokedAt" in one ? one.revokedAt : one))).toEqual([AT, AT + 5, undefined]);
    expect(await store.accounts.keysRevision()).not.toBe(before);
  });

  test("what a caller may get wrong is an answer, and a repeat of what was done says what the first one said", async () => {
    await using at = await place(engine);
    const store = await at.open();
    expect(await store.accounts.keyAdd(key)).toBe("account_unknown");
    const poor = { ...funded("a1", "one@example.org"), credit: 0n };
    expect([await store.accounts.accountAdd(poor), await store.accounts.accountAdd(poor)]).toEqual(["added", "added"]);
    expect(await store.accounts.accountAdd({ ...poor, id: "a2" })).toBe("email_taken");
    expect(await store.accounts.keyAdd(key)).toBe("payment_required");
    const pay = { accountId: "a1", transferId: "t1", amount: 5n, at: AT, month: 202_611 };
    expect([await store.charges.credit(pay), await store.charges.credit(pay)]).toEqual(["credited", "credited"]);
    expect((await money(store)).credits).toBe(5n);
    expect([await store.accounts.keyAdd(key), await store.accounts.keyAdd(key)]).toEqual(["added", "added"]);
    expect(await store.accounts.keyAdd({ ...key, sha256: new Uint8Array(32) })).toBe("id_taken");
    expect([
      await store.accounts.keyRevoke({ publicId: "none", at: 9 }),
      await store.accounts.keyByPublicId("none"),
    ]).toEqual(["unknown", undefined]);
    expect(await store.accounts.keyRevoke({ publicId: key.publicId, accountId: "a9", at: 9 })).toBe("unknown");
    expect(await store.charges.credit({ ...pay, accountId: "a9" })).toBe("account_unknown");
    expect(await store.accounts.spendLimit({ accountId: "a9", limit: 1n })).toBe("account_unknown");
    expect(await store.accounts.accountByEmail("nobody@example.org")).toBeUndefined();
  });

  test("a repeat of the last key that an account may have, or of one whose account has spent all since, says added", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    const nth = (index: number) => ({ ...key, publicId: `p${index}`.padEnd(12, "x") });
    const last = LIMITS.accountKeysMax - 1;
    for (let index = 0; index <= last; index += 1) expect(await store.accounts.keyAdd(nth(index))).toBe("added");
    expect([await store.accounts.keyAdd(nth(last)), await store.accounts.keyAdd(nth(last + 1))]).toEqual([
      "added",
      "too_many",
    ]);
    await store.charges.credit({ accountId: "a1", transferId: "t1", amount: -(10n ** 15n), at: AT, month: 202_611 });
    expect([await store.accounts.keyAdd(nth(last)), await store.accounts.keyAdd(nth(last + 1))]).toEqual([
      "added",
      "payment_required",
    ]);
    expect(await store.accounts.keyAdd({ ...nth(last), sha256: new Uint8Array(32) })).toBe("id_taken");
  });

  test("a key stays revoked at the moment of its first revocation, and each one changes the revision", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    await store.accounts.keyAdd(key);
    const before = await store.accounts.keysRevision();
    await store.accounts.keyRevoke({ publicId: key.publicId, accountId: "a1", at: 9 });
    await store.accounts.keyRevoke({ publicId: key.publicId, at: 99 });
    expect(await store.accounts.keyByPublicId(key.publicId)).toMatchObject({ revokedAt: 9 });
    expect(await store.accounts.keysRevision()).toBe(Number.isNaN(before) ? 0n : (before as bigint) + 2n);
  });

  test("the keys that were used last come first, those that were never used by when they were made; revoked ones do not come", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    const named = (letter: string, createdAt: number) => ({
      ...key,
      publicId: letter.repeat(12),
      sha256: new Uint8Array(32).fill(letter.charCodeAt(0)),
      createdAt,
    });
    for (const [letter, at] of Object.entries({ a: 10, b: 20, c: 30, d: 40 }))
      await store.accounts.keyAdd(named(letter, at));
    await store.accounts.keysUsed([{ publicId: "a".repeat(12), at: 35 }]);
    await store.accounts.keyRevoke({ publicId: "d".repeat(12), at: 41 });
    expect(await store.accounts.keysRecent(2)).toEqual(["a".repeat(12), "c".repeat(12)]);
  });

  test("a closed store answers StoreDown", async () => {
    await using at = await place(engine);
    const store = await at.open();
    expect(await store.ping()).toBeUndefined();
    await store.close();
    const down = [
      await store.ping(),
      await store.accounts.list(),
      await store.charges.hold(newCharge("r")),
      await store.accounts.spendLimit({ accountId: "a", limit: 1n }),
    ];
    expect(down.map((one) => one instanceof StoreDown)).toEqual([true, true, true, true]);
  });

  test("two nodes that start at once bring the schema up to date once", async () => {
    await using at = await place(engine);
    if (engine === "SQLite") {
      await at.open();
      return;
    }
    const stores = await Promise.all([at.open(), at.open(), at.open(), at.open()]);
    await stores[0]?.accounts.accountAdd(funded("a1", "one@example.org"));
    expect(await stores[3]?.accounts.accountById("a1")).toMatchObject({ id: "a1" });
  });
}
