/** Links, sign-ins, device logins, throttling: tests that hold for each engine (store.test.ts). */
import { expect, test } from "bun:test";
import { type EngineName, place } from "../../store/engines.ts";
import { AT, key } from "../../store/rows.ts";
import { funded } from "../fake-store.ts";

const DAY = 86_400;

export function peopleTests(engine: EngineName): void {
  test("a one-time link makes the operator's account once; a newer link replaces it", async () => {
    await using at = await place(engine);
    const store = await at.open();
    const link = (byte: number) => ({
      tokenSha256: new Uint8Array(32).fill(byte),
      kind: "operator" as const,
      accountId: undefined,
      expiresAt: AT,
    });
    await store.accounts.accountAdd({ ...funded("a1", "taken@example.org"), password: "hash" });
    await store.accounts.accountAdd(funded("a2", "dev@localhost"));
    await store.people.linkAdd(link(1));
    await store.people.linkAdd(link(2));
    const use = (byte: number, email: string, now = 5) => ({
      tokenSha256: new Uint8Array(32).fill(byte),
      now,
      createdAt: 5,
      newAccountId: "a3",
      email,
      password: "argon",
      revokeKeys: false,
    });
    expect(await store.people.linkByToken({ tokenSha256: new Uint8Array(32).fill(2), now: 5 })).toMatchObject({
      kind: "operator",
      email: "",
    });
    expect([
      await store.people.linkRedeem(use(1, "me@example.org")),
      await store.people.linkRedeem(use(2, "me@example.org", AT)),
      await store.people.linkRedeem(use(2, "taken@example.org")),
      await store.people.linkRedeem(use(2, "dev@localhost")),
      await store.people.linkRedeem(use(2, "me@example.org")),
    ]).toEqual(["link_unknown", "link_unknown", "email_taken", { accountId: "a2" }, "link_unknown"]);
    expect(await store.accounts.accountById("a2")).toMatchObject({ password: "argon" });
    // This very use again, after an answer that was lost: its salted hash is nobody else's.
    expect([
      await store.people.linkRedeem(use(2, "dev@localhost")),
      await store.people.linkRedeem({ ...use(2, "dev@localhost"), password: "other" }),
    ]).toEqual([{ accountId: "a2" }, "link_unknown"]);
    expect([await store.accounts.accountById("a3"), await store.people.operatorMissing()]).toEqual([undefined, false]);
  });

  test("a new password, a link and a reset end sign-ins and links, and the keys where that is chosen", async () => {
    for (const revokeKeys of [false, true]) {
      for (const how of ["change", "link", "reset"] as const) {
        await using at = await place(engine);
        const store = await at.open();
        const byte = (n: number) => new Uint8Array(32).fill(n);
        for (const id of ["a1", "a2"]) {
          await store.accounts.accountAdd({ ...funded(id, `${id}@example.org`), password: "old" });
          await store.accounts.keyAdd({ ...key, publicId: id.repeat(6), accountId: id });
        }
        const times = { method: "password", createdAt: 1, provedAt: 1, expiresAt: AT } as const;
        for (const [n, accountId] of [
          [1, "a1"],
          [2, "a1"],
          [3, "a2"],
        ] as const) {
          await store.people.signInAdd({ ...times, tokenSha256: byte(n), accountId, password: "old" });
        }
        const link = (n: number) =>
          ({ tokenSha256: byte(n), kind: "password", accountId: "a1", expiresAt: AT }) as const;
        await store.people.linkAdd(link(8));
        await store.people.linkAdd(link(9));
        expect(await store.people.linkByToken({ tokenSha256: byte(8), now: 5 })).toMatchObject({ keys: 1 });
        const set = { accountId: "a1", password: "new", revokeKeys, now: 5 };
        const use = { ...set, createdAt: 5, tokenSha256: byte(8), newAccountId: "a9", email: "a1@example.org" };
        const ways = {
          change: () => store.people.passwordSet({ ...set, keepSignIn: byte(1) }),
          link: () => store.people.linkRedeem(use),
          reset: () => store.people.passwordReset({ ...set, link: link(7) }),
        };
        // Once more, as after an answer that was lost.
        expect(await ways[how]()).toEqual(await ways[how]());
        const signedIn = async (n: number) =>
          (await store.people.signInByToken({ tokenSha256: byte(n), now: 5 })) !== undefined;
        const links = async (n: number) =>
          (await store.people.linkByToken({ tokenSha256: byte(n), now: 5 })) !== undefined;
        const valid = async (id: string) => {
          const found = await store.accounts.keyByPublicId(id.repeat(6));
          return found && "sha256" in found && found.revokedAt === undefined;
        };
        expect([how, await signedIn(1), await signedIn(2), await signedIn(3)]).toEqual([
          how,
          how === "change",
          false,
          true,
        ]);
        expect([how, await links(8), await links(9), await links(7)]).toEqual([how, false, false, how === "reset"]);
        expect([how, await valid("a1"), await valid("a2")]).toEqual([how, !revokeKeys, true]);
      }
    }
  }, 60_000);

  test("a sign-in has a method, and the time at which the person last proved to be the one", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd({ ...funded("a1", "one@example.org"), password: "old" });
    const tokenSha256 = new Uint8Array(32).fill(1);
    const times = { createdAt: 3, provedAt: 3, expiresAt: AT };
    await store.people.signInAdd({ tokenSha256, accountId: "a1", method: "password", ...times, password: "old" });
    expect(await store.people.signInByToken({ tokenSha256, now: 5 })).toMatchObject({ method: "password", ...times });
    expect(await store.people.signInProve({ tokenSha256, at: 900 })).toBe("proved");
    expect(await store.people.signInByToken({ tokenSha256, now: 5 })).toMatchObject({ ...times, provedAt: 900 });
  });

  test("a password link sets the password of its account and ends its sign-ins; sign-ins end with their time", async () => {
    await using at = await place(engine);
    const store = await at.open();
    expect(await store.people.operatorMissing()).toBe(true);
    await store.accounts.accountAdd({ ...funded("a1", "one@example.org"), password: "old" });
    const token = (byte: number) => new Uint8Array(32).fill(byte);
    const signIn = (byte: number) => ({
      tokenSha256: token(byte),
      accountId: "a1",
      method: "password" as const,
      createdAt: 1,
      provedAt: 1,
      expiresAt: 50,
    });
    const signInAdd = (byte: number, password: string) => store.people.signInAdd({ ...signIn(byte), password });
    expect([await signInAdd(1, "old"), await signInAdd(1, "old"), await signInAdd(4, "other")]).toEqual([
      "added",
      "added",
      "password_changed",
    ]);
    expect(await store.people.signInByToken({ tokenSha256: token(1), now: 49 })).toEqual({
      ...signIn(1),
      email: "one@example.org",
    });
    expect(await store.people.signInByToken({ tokenSha256: token(1), now: 50 })).toBeUndefined();
    await store.people.linkAdd({ tokenSha256: token(9), kind: "password", accountId: "a1", expiresAt: 50 });
    expect(await store.people.linkByToken({ tokenSha256: token(9), now: 5 })).toMatchObject({
      email: "one@example.org",
    });
    await store.people.linkAdd({ tokenSha256: token(8), kind: "password", accountId: "a1", expiresAt: 50 });
    const use = {
      tokenSha256: token(9),
      now: 5,
      createdAt: 5,
      newAccountId: "a9",
      email: "one@example.org",
      password: "new",
      revokeKeys: false,
    };
    expect([await store.people.linkRedeem(use), await store.people.linkRedeem(use)]).toEqual([
      { accountId: "a1" },
      { accountId: "a1" },
    ]);
    expect(await store.people.signInByToken({ tokenSha256: token(1), now: 5 })).toBeUndefined();
    // An older link is void once a newer one was used, and so is a password that was right a moment before.
    expect(await store.people.linkRedeem({ ...use, tokenSha256: token(8), password: "newest" })).toBe("link_unknown");
    expect([await signInAdd(2, "old"), await signInAdd(2, "new"), await signInAdd(3, "new")]).toEqual([
      "password_changed",
      "added",
      "added",
    ]);
    await store.people.linkAdd({ tokenSha256: token(7), kind: "password", accountId: "a1", expiresAt: 50 });
    await store.people.passwordSet({
      accountId: "a1",
      password: "newer",
      keepSignIn: token(2),
      revokeKeys: false,
      now: 5,
    });
    const left = async () =>
      [
        await store.people.signInByToken({ tokenSha256: token(2), now: 5 }),
        await store.people.signInByToken({ tokenSha256: token(3), now: 5 }),
      ].map((found) => found !== undefined);
    expect(await left()).toEqual([true, false]);
    expect(await store.people.linkByToken({ tokenSha256: token(7), now: 5 })).toBeUndefined();
    await store.people.signInRemove({ tokenSha256: token(2) });
    expect(await left()).toEqual([false, false]);
    await store.people.peopleForget({ now: 100 });
  });

  test("a device login is decided once, gives its key once, and only while the sign-in that approved it lasts", async () => {
    await using at = await place(engine);
    const store = await at.open();
    const password = "p";
    await store.accounts.accountAdd({ ...funded("a1", "one@example.org"), password });
    await store.accounts.accountAdd({ ...funded("a2", "two@example.org"), credit: 0n, password });
    const bytes = (byte: number) => new Uint8Array(32).fill(byte);
    for (const [byte, accountId] of [
      [100, "a1"],
      [101, "a1"],
      [102, "a2"],
    ] as const) {
      await store.people.signInAdd({
        tokenSha256: bytes(byte),
        accountId,
        method: "password",
        createdAt: 1,
        provedAt: 1,
        expiresAt: AT + 999,
        password,
      });
    }
    const login = (byte: number) => ({
      deviceSha256: bytes(byte),
      userCodeSha256: bytes(byte + 50),
      deviceName: "robot",
      address: "127.0.0.1",
      createdAt: AT,
      expiresAt: AT + 900,
      intervalSeconds: 5,
    });
    for (const byte of [1, 2, 3, 4, 5]) expect(await store.people.deviceAdd(login(byte))).toBe("added");
    expect([
      await store.people.deviceAdd(login(1)),
      await store.people.deviceAdd({ ...login(6), userCodeSha256: bytes(51) }),
      await store.people.deviceAdd({ ...login(1), userCodeSha256: bytes(99) }),
    ]).toEqual(["added", "code_taken", "code_taken"]);
    expect(await store.people.deviceByUserCode({ userCodeSha256: bytes(51), now: AT })).toEqual(login(1));
    const poll = (byte: number, now: number, publicId = `p${byte}`.padEnd(12, "x")) => {
      const { accountId: _, name: __, ...rest } = key;
      // The wall clock shows another day.
      const fresh = { ...rest, publicId, sha256: bytes(byte), createdAt: now - DAY };
      return store.people.devicePoll({ deviceSha256: bytes(byte), key: fresh, now });
    };
    // Too early makes the pause longer: 5 s, then 10.
    expect([await poll(1, AT + 5), await poll(1, AT + 7), await poll(1, AT + 13), await poll(1, AT + 40)]).toEqual([
      "pending",
      "slow_down",
      "slow_down",
      "pending",
    ]);
    const decide = (byte: number, approve: boolean, signIn: number, accountId = "a1") =>
      store.people.deviceDecide({
        userCodeSha256: bytes(byte + 50),
        approve,
        accountId,
        signInSha256: bytes(signIn),
        now: AT + 20,
      });
    // The same decision of the same sign-in again, after an answer that was lost, is no second one.
    expect([
      await decide(1, true, 100),
      await decide(1, true, 100),
      await decide(1, false, 100),
      await decide(1, true, 101),
      await decide(1, true, 100, "a2"),
      await decide(9, true, 100),
    ]).toEqual(["decided", "decided", "gone", "gone", "gone", "gone"]);
    expect(await store.people.deviceByUserCode({ userCodeSha256: bytes(51), now: AT })).toBeUndefined();
    // The same question again, after an answer that was lost, gets the same key; another one ends it: the code is used.
    const granted = { accountId: "a1" };
    expect([await poll(1, AT + 21), await poll(1, AT + 22)]).toEqual([granted, granted]);
    expect([await decide(1, true, 100), await decide(1, false, 100)]).toEqual(["decided", "gone"]);
    expect(await store.accounts.keysOf("a1")).toMatchObject([
      { name: "robot", sha256: bytes(1), revokedAt: undefined },
    ]);
    const other = "q".repeat(12);
    expect([await poll(1, AT + 23, other), await poll(1, AT + 24, other)]).toEqual(["unknown", "unknown"]);
    expect(await store.accounts.keysOf("a1")).toMatchObject([{ sha256: bytes(1), revokedAt: AT + 23 - DAY }]);
    expect([await decide(2, false, 100), await decide(2, false, 100), await decide(2, true, 100)]).toEqual([
      "decided",
      "decided",
      "gone",
    ]);
    await decide(3, true, 101);
    await store.people.signInRemove({ tokenSha256: bytes(101) });
    await decide(4, true, 102, "a2");
    expect([
      await poll(2, AT + 21),
      await poll(3, AT + 21),
      await poll(4, AT + 21),
      await poll(5, AT + 900),
      await poll(99, AT),
    ]).toEqual(["denied", "denied", "payment_required", "expired", "unknown"]);
    expect(await store.accounts.keysOf("a2")).toEqual([]);
  });

  test("attempts are counted in a window, also when they come at once", async () => {
    await using at = await place(engine);
    const store = await at.open();
    const tried = (now: number) => store.people.attempt({ name: "x", max: 3, windowSeconds: 60, now });
    const outcomes = await Promise.all([tried(AT), tried(AT), tried(AT), tried(AT + 20)]);
    expect([outcomes.filter((one) => one === "allowed").length, await tried(AT + 59), await tried(AT + 60)]).toEqual([
      3,
      { refusedSeconds: 1 },
      "allowed",
    ]);
  });
}
