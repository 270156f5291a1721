/** Pages for people: signing in, one-time links, keys, limits; and what somebody may try against them. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { Failure } from "../../../src/std/failure.ts";
import { observation, type Stage, stage } from "../../robot/stage.ts";
import { Browser, PASSWORD, signedIn, visit } from "./browser.ts";

const EMAIL = "me@example.org";
const ID = `acct_${EMAIL}`;

async function operatorToken(at: Stage): Promise<string> {
  const token = await at.service.people.operatorLink();
  if (typeof token !== "string") throw new Error("no link");
  return token;
}

/** The status, and the address to which the answer leads. */
async function end(response: Promise<Response>): Promise<[number, string | null]> {
  const { status, headers } = await response;
  return [status, headers.get("location")];
}

describe("the operator's link", () => {
  test("makes the operator's account, signs in, and works once", async () => {
    const at = await stage();
    const token = await operatorToken(at);
    const browser = new Browser(at);
    expect(await browser.status(`/welcome?token=${token}`)).toBe(200);
    const form = { token, email: "Me@Example.org", password: PASSWORD };
    expect(await end(browser.post("/welcome", form))).toEqual([303, "/account"]);
    expect(await browser.text("/account")).toContain(EMAIL);
    expect(await at.store.accounts.accountByEmail(EMAIL)).toMatchObject({ verified: true });
    expect(await new Browser(at).status(`/welcome?token=${token}`)).toBe(404);
    expect((await new Browser(at).post("/welcome", { ...form, email: "other@example.org" })).status).toBe(404);
    expect(await at.service.people.operatorLink()).toBeUndefined();
  });

  test("a short password, no e-mail, a wrong or old link: words, and nothing is made", async () => {
    const at = await stage();
    const token = await operatorToken(at);
    const browser = new Browser(at);
    const form = { token, email: EMAIL, password: PASSWORD };
    const status = async (changes: object) => (await browser.post("/welcome", { ...form, ...changes })).status;
    expect(await status({ password: "short" })).toBe(422);
    expect(await status({ email: "nobody" })).toBe(422);
    expect(await status({ token: "x".repeat(43) })).toBe(404);
    expect(await browser.status("/welcome?token=1")).toBe(404);
    at.clock.advance(LIMITS.linkSeconds * 1000);
    expect(await status({})).toBe(404);
    expect(await at.store.accounts.accountByEmail(EMAIL)).toBeUndefined();
  });
});

describe("signing in", () => {
  const right = { email: EMAIL, password: PASSWORD };

  test("leads where the person wanted to go, but only to our own pages", async () => {
    const { at } = await visit();
    const browser = new Browser(at);
    const form = { email: "ME@example.org", password: PASSWORD };
    const wanted = "/device?user_code=BCDF-GHJK";
    expect(await end(browser.post("/sign-in", { ...form, next: wanted }))).toEqual([303, wanted]);
    for (const next of ["//evil.example", "https://evil.example/", "/\\evil", "/account/../x"])
      expect([next, await end(browser.post("/sign-in", { ...form, next }))]).toEqual([next, [303, "/account"]]);
    const without = new Browser(at);
    expect(await end(without.get("/account"))).toEqual([303, "/sign-in?next=%2Faccount"]);
    expect(await end(without.get(wanted))).toEqual([303, `/sign-in?next=${encodeURIComponent(wanted)}`]);
  });

  test("a wrong password and an unknown e-mail are answered alike", async () => {
    const { at } = await visit();
    const answer = async (email: string) => {
      const response = await new Browser(at).post("/sign-in", { email, password: "wrong password here", next: "" });
      return [response.status, (await response.text()).replaceAll(email, "E")];
    };
    const wrong = await answer(EMAIL);
    expect(wrong[0]).toBe(401);
    expect(await answer("who@example.org")).toEqual(wrong);
  });

  test("a try refused for its network uses up nothing of the account and writes nothing", async () => {
    const { at } = await visit();
    const flood = new Browser(at);
    for (let tries = 0; tries < LIMITS.networkTriesMax + 20; tries += 1) {
      await flood.post("/sign-in", { email: `${tries}@example.org`, password: "" });
    }
    const refused = await flood.post("/sign-in", right);
    expect([refused.status, Number(refused.headers.get("retry-after")) > 60]).toEqual([429, true]);
    const now = Math.floor(at.clock.unixMs() / 1000);
    const attempt = (max: number) => at.store.people.attempt({ name: `sign-in ${EMAIL}`, max, windowSeconds: 60, now });
    // The sign-in before the flood was the only try that counted for the e-mail.
    expect([await attempt(2), await attempt(1)]).toEqual(["allowed", { refusedSeconds: expect.any(Number) }]);
  });

  test("a guesser of passwords is held up, the account's owner elsewhere is not", async () => {
    const { at } = await visit();
    const statuses = [];
    for (let tries = 0; tries < LIMITS.signInTriesMax + 1; tries += 1) {
      const form = { email: EMAIL, password: `guess number ${tries}` };
      statuses.push((await new Browser(at).post("/sign-in", form)).status);
    }
    // One of the tries was the sign-in before.
    expect(statuses).toEqual([...Array(LIMITS.signInTriesMax - 1).fill(401), 429, 429]);
    at.clock.advance(LIMITS.attemptSeconds * 1000);
    expect(await end(new Browser(at).post("/sign-in", right))).toEqual([303, "/account"]);
  });

  test("the cookie is HttpOnly and SameSite, and Secure with the __Host- prefix behind TLS", async () => {
    const { at } = await visit();
    const cookie = async (headers: Record<string, string>) =>
      (await new Browser(at, headers).post("/sign-in", right)).headers.getSetCookie()[0] ?? "";
    expect(await cookie({})).toMatch(/^tendon=\w{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    expect(await cookie({ "x-forwarded-proto": "https" })).toMatch(
      /^__Host-tendon=\w{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test("signing out ends the sign-in, not only the cookie; time ends it as well", async () => {
    const { at, browser } = await visit();
    const thief = new Browser(at);
    thief.cookie = browser.cookie;
    expect(await thief.status("/account")).toBe(200);
    expect(await end(browser.submit("/sign-out", {}))).toEqual([303, "/sign-in"]);
    expect([browser.cookie, await thief.status("/account")]).toEqual([expect.not.stringMatching(/tendon=/), 303]);
    const again = new Browser(at);
    await again.post("/sign-in", right);
    at.clock.advance(LIMITS.signInSeconds * 1000);
    expect(await again.status("/account")).toBe(303);
  });

  test("sign-up is closed unless the operator opens it; its account has no confirmed e-mail, no credit and no key", async () => {
    const closed = await stage();
    const form = { email: "new@example.org", password: PASSWORD };
    expect(await new Browser(closed).status("/sign-up")).toBe(404);
    expect((await new Browser(closed).post("/sign-up", form)).status).toBe(404);
    const open = await stage({ signUpOpen: true });
    const browser = new Browser(open);
    expect(await end(browser.post("/sign-up", form))).toEqual([303, "/account"]);
    expect(await open.store.accounts.accountByEmail(form.email)).toMatchObject({ verified: false });
    expect((await new Browser(open).post("/sign-up", form)).status).toBe(422);
    const response = await browser.submit("/account/keys", { name: "robot" });
    expect([response.status, await response.text()]).toEqual([
      422,
      expect.stringContaining("needs a payment method or credit"),
    ]);
  });
});

describe("the account page", () => {
  test("a key is shown whole once, works at once, and a revoked one gives 401", async () => {
    const { at, browser } = await visit();
    const page = await (await browser.submit("/account/keys", { name: "arm <1>" })).text();
    const key = /tdn_\w{12}_\w{42}/.exec(page)?.[0] ?? "";
    const prefix = key.slice(0, 16);
    const ask = async () => (await at.chat(observation(), { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await ask()).toBe(200);
    const later = await browser.text("/account");
    expect(later).not.toContain(key);
    expect(later).toContain(prefix);
    expect(later).toContain("arm &lt;1&gt;");
    expect(await end(browser.submit("/account/keys/revoke", { prefix }))).toEqual([303, "/account?done=revoked"]);
    expect(await ask()).toBe(401);
  });

  test("an account has a bounded number of valid keys, and their names are plain text", async () => {
    const { at, browser } = await visit();
    const create = async (name: string) => (await browser.submit("/account/keys", { name })).status;
    expect([await create("a\u0000b"), await create("\u202e")]).toEqual([422, 422]);
    for (let index = 0; index < LIMITS.accountKeysMax; index += 1) {
      const publicId = String(index).padStart(12, "0");
      await at.store.accounts.keyAdd({ publicId, sha256: new Uint8Array(32), accountId: ID, name: "", createdAt: 1 });
    }
    expect(await create("one more")).toBe(422);
    await browser.submit("/account/keys/revoke", { prefix: `tdn_${"7".padStart(12, "0")}` });
    expect([await create("one more"), await browser.status("/account")]).toEqual([200, 200]);
  });

  test("one account's page neither shows nor revokes another's keys", async () => {
    const { at, browser } = await visit();
    const prefix = at.key.slice(0, 16);
    expect(await browser.text("/account")).not.toContain(prefix);
    const response = await browser.submit("/account/keys/revoke", { prefix });
    expect([response.status, (await at.chat(observation())).status]).toEqual([422, 200]);
  });

  test.each([
    ["12.50", 303, 12_500_000_000n],
    ["-1", 422, 5n],
    ["1e9", 422, 5n],
    ["", 303, undefined],
  ])("a spend limit of '%s' is answered with %i", async (usd, status, spendLimit) => {
    const { at, browser } = await visit();
    await at.store.accounts.spendLimit({ accountId: ID, limit: 5n });
    expect((await browser.submit("/account/limit", { usd })).status).toBe(status);
    expect(await at.store.accounts.accountById(ID)).toMatchObject({ spendLimit });
  });

  test("shows what the month of the clock has cost, whatever months the clock showed before", async () => {
    const { at, browser } = await visit();
    const { charges } = at.service.core;
    const spend = async (chargeId: string, promptTokens: number) => {
      const rates = { prompt: 1_000_000_000n, cachedPrompt: 0n, completion: 0n };
      const work = { chargeId, accountId: ID, item: "m", rates, deadlineMs: 10_000 };
      const charge = await charges.hold({ ...work, max: { promptTokens, completionTokens: 0 } });
      if (charge instanceof Failure) throw new Error(charge.message);
      await charges.settle(charge, { promptTokens, cachedTokens: 0, completionTokens: 0 }, (settlement) =>
        at.store.robot.settleChunk({ ...settlement, session: undefined, observation: undefined }),
      );
    };
    const month = async () => {
      const [, section = ""] = (await browser.text("/account")).split("Spend limit");
      const [, spent, name] = /class="large">[^$]*\$([\d.]+).*?in (\w+ \d+), no limit/s.exec(section) ?? [];
      return `${name} ${Number(spent)}`;
    };
    await spend("one", 5);
    expect(await month()).toBe("November 2023 5");
    at.clock.jump(40 * 86_400_000);
    expect(await month()).toBe("December 2023 0");
    await spend("two", 7);
    expect(await month()).toBe("December 2023 7");
    at.clock.jump(-40 * 86_400_000);
    expect(await month()).toBe("November 2023 5");
    await spend("three", 2);
    expect(await month()).toBe("November 2023 7");
  });
});

describe("what somebody may try", () => {
  test("a stolen cookie without its CSRF token, or another's token, changes nothing", async () => {
    const { at, browser } = await visit();
    const other = await signedIn(at, "other@example.org");
    const thief = new Browser(at);
    thief.cookie = browser.cookie;
    const forms = {
      "/account/keys": { name: "x" },
      "/account/limit": { usd: "1" },
      "/account/identities": {},
      "/account/identities/disconnect": { identity: "a b" },
      "/account/password": { current: PASSWORD, password: "another long one" },
      "/device/decide": { user_code: "BCDF-GHJK", decision: "approve" },
      "/sign-out": {},
    };
    for (const [path, fields] of Object.entries(forms)) {
      for (const csrf of ["", "x", await other.csrf()])
        expect([path, (await thief.post(path, { ...fields, csrf })).status]).toEqual([path, 403]);
    }
    expect([await at.store.accounts.keysOf(ID), await browser.status("/account")]).toEqual([[], 200]);
  });

  test.each([
    [{ "sec-fetch-site": "cross-site" }, 403],
    [{ "sec-fetch-site": "same-site" }, 403],
    [{ origin: "https://evil.example" }, 403],
    [{ origin: "null" }, 403],
    [{ origin: "http://localhost" }, 303],
  ])("a form with the right token and %p is answered with %i", async (headers: Record<string, string>, status) => {
    const { at, browser } = await visit();
    expect((await browser.submit("/account/limit", { usd: "1" }, headers)).status).toBe(status);
    const signIn = await new Browser(at).post("/sign-in", { email: EMAIL, password: PASSWORD }, headers);
    expect(signIn.status).toBe(status);
  });

  test("an oversized form, another content type and garbage are refused in words", async () => {
    const { at, browser } = await visit();
    const status = async (fields: Record<string, string>, headers?: Record<string, string>) =>
      (await browser.submit("/account/keys", fields, headers)).status;
    expect(await status({ name: "x".repeat(LIMITS.formBytesMax) })).toBe(413);
    expect(await status({}, { "content-type": "application/json" })).toBe(422);
    expect(await status({ name: "x".repeat(LIMITS.keyNameCharsMax + 1) })).toBe(422);
    expect(await at.store.accounts.keysOf(ID)).toEqual([]);
    expect(at.service.http.ingress.bytes).toBe(0);
  });

  test.each(["/account", "/device", "/sign-in", "/welcome?token=x", "/sign-up"])(
    "%s has the strict policy, and is not kept by caches",
    async (path) => {
      const { headers } = await (await visit()).browser.get(path);
      expect(headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      expect([headers.get("cache-control"), headers.get("x-frame-options")]).toEqual(["no-store", "DENY"]);
    },
  );

  test("with the store gone a page says so instead of signing anybody in or out", async () => {
    const { at, browser } = await visit();
    at.store.down = true;
    expect(await browser.status("/account")).toBe(503);
    expect((await browser.post("/sign-in", { email: EMAIL, password: PASSWORD })).status).toBe(503);
    at.store.down = false;
    expect(await browser.status("/account")).toBe(200);
  });
});
