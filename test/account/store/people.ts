/** Links, sign-ins, device logins, throttling: tests that hold for each engine (store.test.ts). */
import { expect } from "bun:test";
import { type EngineName, storeTest } from "../../store/engines.ts";
import { AT, addAccount, key } from "../../store/rows.ts";

const DAY = 86_400;

const bytes = (byte: number) => new Uint8Array(32).fill(byte);
const passwordLink = (byte: number) =>
  ({ tokenSha256: bytes(byte), kind: "password", accountId: "a1", expiresAt: AT }) as const;
const signIn = (byte: number, accountId = "a1", expiresAt = AT) => ({
  tokenSha256: bytes(byte),
  accountId,
  at: 1,
  expiresAt,
});

export function peopleTests(engine: EngineName): void {
  const test = storeTest(engine);

  test("a one-time link makes the operator's account once; a newer link replaces it", async (store) => {
    const { people } = store;
    const link = (byte: number) => ({ ...passwordLink(byte), kind: "operator", accountId: undefined }) as const;
    expect(await people.operatorMissing()).toBe(true);
    await addAccount(store, { email: "taken@example.org", password: "hash" });
    await addAccount(store, { id: "a2", email: "dev@localhost" });
    for (const byte of [1, 2]) await people.linkAdd(link(byte));
    expect(await people.linkByToken({ tokenSha256: bytes(2), now: 5 })).toMatchObject({ kind: "operator", email: "" });
    const redeem = (byte: number, email: string, now = 5, password = "argon") =>
      people.linkRedeem({
        ...{ tokenSha256: bytes(byte), now, createdAt: 5, newAccountId: "a3" },
        ...{ email, password, revokeKeys: false },
      });
    expect(await redeem(1, "me@example.org")).toBe("link_unknown");
    expect(await redeem(2, "me@example.org", AT)).toBe("link_unknown");
    expect(await redeem(2, "taken@example.org")).toBe("email_taken");
    expect(await redeem(2, "dev@localhost")).toEqual({ accountId: "a2" });
    expect(await redeem(2, "me@example.org")).toBe("link_unknown");
    expect(await store.accounts.accountById("a2")).toMatchObject({ password: "argon" });
    // This very use again, after an answer that was lost: no other use has its salted hash.
    expect(await redeem(2, "dev@localhost")).toEqual({ accountId: "a2" });
    expect(await redeem(2, "dev@localhost", 5, "other")).toBe("link_unknown");
    expect([await store.accounts.accountById("a3"), await people.operatorMissing()]).toEqual([undefined, false]);
  });

  for (const how of ["change", "link", "reset"] as const) {
    for (const revokeKeys of [false, true]) {
      const keys = revokeKeys ? "and the keys" : "not the keys";
      test(`a new password by a ${how} ends sign-ins and links, ${keys}, and no other account's`, async (store) => {
        const { people, accounts } = store;
        for (const id of ["a1", "a2"]) {
          await addAccount(store, { id, password: "old" });
          await accounts.keyAdd({ ...key, publicId: id.repeat(6), accountId: id });
        }
        for (const added of [signIn(1), signIn(2), signIn(3, "a2")])
          await people.signInAdd({ ...added, password: "old" });
        for (const byte of [8, 9]) await people.linkAdd(passwordLink(byte));
        expect(await people.linkByToken({ tokenSha256: bytes(8), now: 5 })).toMatchObject({ keys: 1 });
        const before = await accounts.keysRevision();
        const set = { accountId: "a1", password: "new", revokeKeys, now: 5 };
        const use = { ...set, createdAt: 5, tokenSha256: bytes(8), newAccountId: "a9", email: "a1@example.org" };
        const ways = {
          change: () => people.passwordSet({ ...set, keepSignIn: bytes(1) }),
          link: () => people.linkRedeem(use),
          reset: () => people.passwordReset({ ...set, link: passwordLink(7) }),
        };
        // Once more, as after an answer that was lost.
        expect(await ways[how]()).toEqual(await ways[how]());
        const signedIn = [1, 2, 3].map((byte) => people.signInByToken({ tokenSha256: bytes(byte), now: 5 }));
        const links = [7, 8, 9].map((byte) => people.linkByToken({ tokenSha256: bytes(byte), now: 5 }));
        const known = async (found: Promise<unknown>[]) => (await Promise.all(found)).map((one) => one !== undefined);
        expect(await known(signedIn)).toEqual([how === "change", false, true]);
        expect(await known(links)).toEqual([how === "reset", false, false]);
        const revoked = (id: string) => accounts.keyByPublicId(id.repeat(6));
        expect([await revoked("a1"), await revoked("a2")]).toMatchObject([
          { revokedAt: revokeKeys ? 5 : undefined },
          { revokedAt: undefined },
        ]);
        expect((await accounts.keysRevision()) !== before).toBe(revokeKeys);
      });
    }
  }

  test("a sign-in is of the password that was verified, ends with its time, and is young again after a proof", async (store) => {
    const { people } = store;
    await addAccount(store, { password: "old" });
    const add = (byte: number, password: string) => people.signInAdd({ ...signIn(byte, "a1", 50), password });
    const found = (byte: number, now: number) => people.signInByToken({ tokenSha256: bytes(byte), now });
    expect([await add(1, "old"), await add(1, "old"), await add(4, "other")]).toEqual([
      "added",
      "added",
      "password_changed",
    ]);
    const { accountId, at: provedAt } = signIn(1);
    const known = { accountId, email: "a1@example.org", hasPassword: true, hasIdentity: false };
    expect(await found(1, 49)).toEqual({ ...known, provedAt });
    expect(await found(1, 50)).toBeUndefined();
    expect(await people.signInProve({ tokenSha256: bytes(1), at: 40 })).toBe("proved");
    expect(await found(1, 49)).toEqual({ ...known, provedAt: 40 });
    for (const byte of [8, 9]) await people.linkAdd(passwordLink(byte));
    expect(await people.linkByToken({ tokenSha256: bytes(9), now: 5 })).toMatchObject({ email: "a1@example.org" });
    const use = { now: 5, createdAt: 5, newAccountId: "a9", email: "a1@example.org", revokeKeys: false };
    expect(await people.linkRedeem({ ...use, tokenSha256: bytes(9), password: "new" })).toEqual({ accountId: "a1" });
    // An older link is void once a newer one was used, and so is a password that was right a moment before.
    expect(await people.linkRedeem({ ...use, tokenSha256: bytes(8), password: "newest" })).toBe("link_unknown");
    expect([await add(2, "old"), await add(2, "new"), await add(3, "new")]).toEqual([
      "password_changed",
      "added",
      "added",
    ]);
    await people.signInRemove({ tokenSha256: bytes(2) });
    expect([await found(2, 5), await found(3, 5)]).toEqual([undefined, expect.objectContaining({ accountId: "a1" })]);
    await people.peopleForget({ now: 50 });
    expect(await found(3, 5)).toBeUndefined();
  });

  test("an identity is of the first account that connects it, and ends with its sign-ins unless it is the last way in", async (store) => {
    const { people } = store;
    await addAccount(store, { password: "p" });
    await addAccount(store, { id: "a2", email: "ann@example.org" });
    const ann = { issuer: "https://id.example", subject: "ann", email: "ann@example.org", at: 7 };
    const enter = (byte: number) => {
      const entry = { tokenSha256: bytes(byte), at: 40, provedAt: 30, expiresAt: AT };
      return people.identityEnter({ ...ann, newAccountId: undefined, signIn: entry });
    };
    for (const byte of [1, 1, 2]) expect(await enter(byte)).toBe("entered");
    const found = (byte: number) => people.signInByToken({ tokenSha256: bytes(byte), now: 50 });
    const who = { accountId: "a2", email: "ann@example.org", provedAt: 30, hasPassword: false, hasIdentity: true };
    expect(await found(1)).toEqual(who);
    const connect = (accountId: string, subject: string) => people.identityConnect({ ...ann, subject, accountId });
    expect([await connect("a1", "ann"), await connect("a1", "bob")]).toEqual(["taken", "connected"]);
    const { at: createdAt, ...kept } = ann;
    expect(await people.identitiesOf("a2")).toEqual([{ ...kept, createdAt }]);
    const end = (accountId: string, subject: string, byte: number) =>
      people.identityEnd({ accountId, issuer: ann.issuer, subject, keepSignIn: bytes(byte) });
    // With a password, or with another identity, there is another way.
    expect([await end("a1", "bob", 9), await end("a2", "ann", 1)]).toEqual(["ended", "last_way"]);
    expect([await found(2), await connect("a2", "other")]).toEqual([who, "connected"]);
    expect([await end("a1", "ann", 9), await people.identitiesOf("a2")]).toMatchObject(["ended", { length: 2 }]);
    const both = await Promise.all([end("a2", "ann", 1), end("a2", "other", 1)]);
    expect(both.toSorted()).toEqual(["ended", "last_way"]);
    expect([await found(1), await found(2), await people.identitiesOf("a2")]).toMatchObject([
      who,
      undefined,
      { length: 1 },
    ]);
  });

  test("a device login is decided once, gives its key once, and only while the sign-in that approved it lasts", async (store) => {
    const { people, accounts } = store;
    await addAccount(store, { password: "p" });
    await addAccount(store, { id: "a2", credit: 0n, password: "p" });
    const later = AT + 999;
    for (const added of [signIn(100, "a1", later), signIn(101, "a1", later), signIn(102, "a2", later)])
      await people.signInAdd({ ...added, password: "p" });
    const login = (byte: number) => ({
      deviceSha256: bytes(byte),
      userCodeSha256: bytes(byte + 50),
      deviceName: "robot",
      address: "127.0.0.1",
      createdAt: AT,
      expiresAt: AT + 900,
      intervalSeconds: 5,
    });
    for (const byte of [1, 2, 3, 4, 5]) expect(await people.deviceAdd(login(byte))).toBe("added");
    expect(await people.deviceAdd(login(1))).toBe("added");
    expect(await people.deviceAdd({ ...login(6), userCodeSha256: bytes(51) })).toBe("code_taken");
    expect(await people.deviceAdd({ ...login(1), userCodeSha256: bytes(99) })).toBe("code_taken");
    expect(await people.deviceByUserCode({ userCodeSha256: bytes(51), now: AT })).toEqual(login(1));
    const poll = (byte: number, now: number, publicId = `p${byte}`.padEnd(12, "x")) => {
      const { accountId: _, name: __, ...rest } = key;
      // The wall clock shows another day.
      const fresh = { ...rest, publicId, sha256: bytes(byte), createdAt: now - DAY };
      return people.devicePoll({ deviceSha256: bytes(byte), key: fresh, now });
    };
    // Too early makes the pause longer: 5 s, then 10.
    const polled = [];
    for (const seconds of [5, 7, 13, 40]) polled.push(await poll(1, AT + seconds));
    expect(polled).toEqual(["pending", "slow_down", "slow_down", "pending"]);
    const decide = (byte: number, approve: boolean, by: number, accountId = "a1") =>
      people.deviceDecide({
        userCodeSha256: bytes(byte + 50),
        approve,
        accountId,
        signInSha256: bytes(by),
        now: AT + 20,
      });
    // The same decision of the same sign-in again, after an answer that was lost, is no second one.
    expect([await decide(1, true, 100), await decide(1, true, 100)]).toEqual(["decided", "decided"]);
    for (const other of [decide(1, false, 100), decide(1, true, 101), decide(1, true, 100, "a2"), decide(9, true, 100)])
      expect(await other).toBe("gone");
    expect(await people.deviceByUserCode({ userCodeSha256: bytes(51), now: AT })).toBeUndefined();
    // The same question again, after an answer that was lost, gets the same key; another one ends it: the code is used.
    expect([await poll(1, AT + 21), await poll(1, AT + 22)]).toEqual(["granted", "granted"]);
    expect([await decide(1, true, 100), await decide(1, false, 100)]).toEqual(["decided", "gone"]);
    expect(await accounts.keysOf("a1")).toMatchObject([{ name: "robot", sha256: bytes(1), revokedAt: undefined }]);
    const other = "q".repeat(12);
    expect([await poll(1, AT + 23, other), await poll(1, AT + 24, other)]).toEqual(["unknown", "unknown"]);
    expect(await accounts.keysOf("a1")).toMatchObject([{ sha256: bytes(1), revokedAt: AT + 23 - DAY }]);
    expect([await decide(2, false, 100), await decide(2, false, 100), await decide(2, true, 100)]).toEqual([
      "decided",
      "decided",
      "gone",
    ]);
    await decide(3, true, 101);
    await people.signInRemove({ tokenSha256: bytes(101) });
    await decide(4, true, 102, "a2");
    expect(await poll(2, AT + 21)).toBe("denied");
    expect(await poll(3, AT + 21)).toBe("denied");
    expect(await poll(4, AT + 21)).toBe("payment_required");
    expect(await poll(5, AT + 900)).toBe("expired");
    expect(await poll(99, AT)).toBe("unknown");
    expect(await accounts.keysOf("a2")).toEqual([]);
  });

  test("attempts are counted in a window, also when they come at once", async ({ people }) => {
    const tried = (now: number) => people.attempt({ name: "x", max: 3, windowSeconds: 60, now });
    const outcomes = await Promise.all([tried(AT), tried(AT), tried(AT), tried(AT + 20)]);
    expect(outcomes.filter((one) => one === "allowed")).toHaveLength(3);
    expect([await tried(AT + 59), await tried(AT + 60)]).toEqual([{ refusedSeconds: 1 }, "allowed"]);
  });
}
