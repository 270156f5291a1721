/**
 * Contract section 6: a new password, or a reset, ends every other sign-in and asks whether to revoke the keys. Making a key asks for
 * the password if the sign-in is over 10 minutes old.
 */
import { describe, expect, test } from "bun:test";
import { newKey } from "../../../src/account/key.ts";
import { makeToken, sha256 } from "../../../src/account/secret.ts";
import { LIMITS } from "../../../src/limits.ts";
import { observation, type Stage } from "../../robot/stage.ts";
import { Browser, PASSWORD, visit } from "./browser.ts";

const EMAIL = "me@example.org";
const ID = `acct_${EMAIL}`;
const NEW = "another long one";
const FRESH_MS = LIMITS.signInFreshSeconds * 1000;

/** A key of the account; whether it works. */
async function withKey(at: Stage): Promise<() => Promise<boolean>> {
  const { key, record } = newKey(0);
  expect(await at.store.accounts.keyAdd({ ...record, accountId: ID, name: "arm" })).toBe("added");
  return async () => (await at.chat(observation(), { headers: { authorization: `Bearer ${key}` } })).status === 200;
}

async function signInWith(at: Stage, password: string): Promise<Browser> {
  const browser = new Browser(at);
  await browser.post("/sign-in", { email: EMAIL, password });
  return browser;
}

const isIn = async (browser: Browser) => (await browser.status("/account")) === 200;
const signsIn = async (at: Stage, password: string) => await isIn(await signInWith(at, password));

describe("a new password", () => {
  const form = { current: PASSWORD, password: NEW };

  test("asks about the keys, with nothing chosen beforehand, and without an answer nothing is changed", async () => {
    const { at, browser } = await visit();
    const works = await withKey(at);
    const page = await browser.text("/account");
    expect([page.match(/name="keys"/g)?.length, page.includes("checked")]).toEqual([2, false]);
    for (const keys of ["", "all", "constructor"]) {
      const refused = await browser.submit("/account/password", { ...form, keys });
      expect(refused.status).toBe(422);
      expect(await refused.text()).toContain("what becomes of the account’s keys");
    }
    expect([await signsIn(at, PASSWORD), await works()]).toEqual([true, true]);
  });

  for (const keys of ["keep", "revoke", "none"] as const) {
    test(`ends the other sign-ins and the old password; keys: ${keys}`, async () => {
      const { at, browser } = await visit();
      const works = keys === "none" ? undefined : await withKey(at);
      expect((await browser.text("/account")).includes('name="keys"')).toBe(keys !== "none");
      const elsewhere = await signInWith(at, PASSWORD);
      const done = await browser.submit("/account/password", { ...form, ...(works ? { keys } : {}) });
      const notice = keys === "revoke" ? "passwordAndKeys" : "password";
      expect([done.status, done.headers.get("location")]).toEqual([303, `/account?done=${notice}`]);
      expect([await isIn(browser), await isIn(elsewhere), await works?.()]).toEqual([
        true,
        false,
        works && keys === "keep",
      ]);
      expect([await signsIn(at, PASSWORD), await signsIn(at, NEW)]).toEqual([false, true]);
      expect(await browser.text(`/account?done=${notice}`)).toContain("Other sign-ins have ended");
    });
  }

  test("is throttled like sign-in: a thief of a cookie cannot guess the current one", async () => {
    const { at, browser } = await visit();
    const guess = async (current: string) =>
      (await browser.submit("/account/password", { current, password: NEW })).status;
    for (let n = 0; n < LIMITS.signInTriesMax; n += 1) expect(await guess(`wrong password ${n}`)).toBe(422);
    expect([await guess(PASSWORD), await signsIn(at, PASSWORD)]).toEqual([429, true]);
  });
});

describe("a reset by the operator", () => {
  async function reset(at: Stage, revokeKeys: boolean): Promise<string> {
    const token = makeToken();
    const link = { tokenSha256: sha256(token), kind: "password", accountId: ID, expiresAt: 10 ** 10 } as const;
    const password = await Bun.password.hash(makeToken(), { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
    expect(await at.store.people.passwordReset({ link, password, revokeKeys, now: 1 })).toBe("reset");
    await at.service.core.keys.refresh();
    return token;
  }

  test("ends password and sign-ins at once; its link asks about the keys and sets a password once", async () => {
    const { at, browser } = await visit();
    const works = await withKey(at);
    const token = await reset(at, false);
    expect([await isIn(browser), await signsIn(at, PASSWORD), await works()]).toEqual([false, false, true]);
    const owner = new Browser(at);
    const page = await owner.text(`/welcome?token=${token}`);
    expect([page.includes(EMAIL), page.includes('value="revoke"')]).toEqual([true, true]);
    const form = { token, password: NEW, email: "" };
    const undecided = await owner.post("/welcome", form);
    expect([undecided.status, (await undecided.text()).includes('value="revoke"')]).toEqual([422, true]);
    expect((await owner.post("/welcome", { ...form, keys: "revoke" })).status).toBe(303);
    expect([await isIn(owner), await works(), await signsIn(at, NEW)]).toEqual([true, false, true]);
    expect((await new Browser(at).post("/welcome", { ...form, keys: "keep" })).status).toBe(404);
  });

  test("may end the keys at once; then its link does not ask", async () => {
    const { at } = await visit();
    const works = await withKey(at);
    const token = await reset(at, true);
    expect(await works()).toBe(false);
    expect(await new Browser(at).text(`/welcome?token=${token}`)).not.toContain('name="keys"');
    expect((await new Browser(at).post("/welcome", { token, password: NEW })).status).toBe(303);
  });
});

describe("making a key", () => {
  test("asks for the password once the sign-in is over ten minutes old, and not again for ten minutes", async () => {
    const { at, browser } = await visit();
    const make = async (fields: Record<string, string> = {}) => {
      const answer = await browser.submit("/account/keys", { name: "arm", ...fields });
      return [answer.status, (await answer.text()).includes("Your new key")];
    };
    const asked = async () => (await browser.text("/account")).includes('name="confirm"');
    at.clock.advance(FRESH_MS);
    expect([await asked(), await make()]).toEqual([false, [200, true]]);
    at.clock.advance(1_000);
    expect([await asked(), await make(), await make({ confirm: "wrong" })]).toEqual([true, [422, false], [422, false]]);
    expect(await make({ confirm: PASSWORD })).toEqual([200, true]);
    at.clock.advance(FRESH_MS);
    expect([await asked(), await make()]).toEqual([false, [200, true]]);
  });

  test("is throttled like sign-in, and the tries are those of the password's change", async () => {
    const { at, browser } = await visit();
    at.clock.advance(FRESH_MS + 1_000);
    const make = async (confirm: string) => (await browser.submit("/account/keys", { name: "arm", confirm })).status;
    for (let n = 0; n < LIMITS.signInTriesMax; n += 1) expect(await make(`wrong ${n}`)).toBe(422);
    expect(await make(PASSWORD)).toBe(429);
  });

  test("approving a device, which gets a key, asks as well; denying it does not", async () => {
    const { at, browser } = await visit();
    at.clock.advance(FRESH_MS + 1_000);
    const begin = async () => {
      const body = new URLSearchParams({ client_id: "tendon-cli", device_name: "arm" });
      const begun = await at.send("/oauth/device_authorization", { method: "POST", body });
      return ((await begun.json()) as { user_code: string }).user_code;
    };
    const decide = async (user_code: string, decision: string, confirm: string) =>
      (await browser.submit("/device/decide", { user_code, decision, confirm })).status;
    const [first, second] = [await begin(), await begin()];
    const page = await (await browser.submit("/device", { user_code: first })).text();
    expect([page.includes('name="confirm"'), /value="deny"[^>]* formnovalidate/.test(page)]).toEqual([true, true]);
    expect(await decide(second, "deny", "")).toBe(200);
    expect(await decide(first, "approve", "")).toBe(422);
    expect(await decide(first, "approve", PASSWORD)).toBe(200);
  });
});
