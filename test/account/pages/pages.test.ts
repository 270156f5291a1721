/** Pages for people: signing in, one-time links, keys, limits; and what somebody may try against them. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { Failure } from "../../../src/std/failure.ts";
import { observation, type Stage, stage } from "../../robot/stage.ts";
import { Browser, PASSWORD, signedIn } from "./browser.ts";

async function operatorToken(at: Stage): Promise<string> {
  const token = await at.service.people.operatorLink();
  if (typeof token !== "string") throw new Error("no link");
  return token;
}

/** Status and where to. */
async function end(response: Promise<Response>): Promise<[number, string | null]> {
  const { status, headers } = await response;
  return [status, headers.get("location")];
}

describe("the operator's link", () => {
  test("makes the operator's account, signs in, and works once", async () => {
    const at = await stage();
    const token = await operatorToken(at);
    const browser = new Browser(at);
    expect((await browser.get(`/welcome?token=${token}`)).status).toBe(200);
    const form = { token, email: "Me@Example.org", password: PASSWORD };
    expect(await end(browser.post("/welcome", form))).toEqual([303, "/account"]);
    expect(await (await browser.get("/account")).text()).toContain("me@example.org");
    expect((await new Browser(at).get(`/welcome?token=${token}`)).status).toBe(404);
    expect((await new Browser(at).post("/welcome", { ...form, email: "other@example.org" })).status).toBe(404);
    expect(await at.service.people.operatorLink()).toBeUndefined();
  });

  test("a short password, no e-mail, a wrong or old link: words, and nothing is made", async () => {
    const at = await stage();
    const token = await operatorToken(at);
    const browser = new Browser(at);
    const form = { token, email: "me@example.org", password: PASSWORD };
    const outcomes = [
      await end(browser.post("/welcome", { ...form, password: "short" })),
      await end(browser.post("/welcome", { ...form, email: "nobody" })),
      await end(browser.post("/welcome", { ...form, token: "x".repeat(43) })),
      await end(browser.get("/welcome?token=1")),
    ];
    at.clock.advance(LIMITS.linkSeconds * 1000);
    outcomes.push(await end(browser.post("/welcome", form)));
    expect(outcomes.map(([status]) => status)).toEqual([422, 422, 404, 404, 404]);
    expect(await at.store.accounts.accountByEmail("me@example.org")).toBeUndefined();
  });
});

describe("signing in", () => {
  test("leads where the person wanted to go, but only to our own pages", async () => {
    const at = await stage();
    await signedIn(at);
    const browser = new Browser(at);
    const form = { email: "ME@example.org", password: PASSWORD };
    const nexts = [
      "/device?user_code=BCDF-GHJK",
      "//evil.example",
      "https://evil.example/",
      "/\\evil",
      "/account/../x",
    ];
    const ends = [];
    for (const next of nexts) ends.push(await end(browser.post("/sign-in", { ...form, next })));
    expect(ends.map(([, to]) => to)).toEqual([nexts[0] ?? "", "/account", "/account", "/account", "/account"]);
    expect(await end(new Browser(at).get("/account"))).toEqual([303, "/sign-in?next=%2Faccount"]);
    expect(await end(new Browser(at).get("/device?user_code=BCDF-GHJK"))).toEqual([
      303,
      "/sign-in?next=%2Fdevice%3Fuser_code%3DBCDF-GHJK",
    ]);
  });

  test("a wrong password and an unknown e-mail are answered alike", async () => {
    const at = await stage();
    await signedIn(at);
    const tries = [
      { email: "me@example.org", password: "wrong password here" },
      { email: "who@example.org", password: "wrong password here" },
    ];
    const pages = [];
    for (const form of tries) {
      const response = await new Browser(at).post("/sign-in", { ...form, next: "" });
      pages.push([response.status, (await response.text()).replaceAll(form.email, "E")]);
    }
    expect(pages[0]?.[0]).toBe(401);
    expect(pages[1]).toEqual(pages[0] ?? []);
  });

  test("who is refused for a network's many tries uses up nothing of the account, and writes nothing more", async () => {
    const at = await stage();
    await signedIn(at);
    const flood = new Browser(at);
    for (let tries = 0; tries < LIMITS.networkTriesMax + 20; tries += 1) {
      await flood.post("/sign-in", { email: `${tries}@example.org`, password: "" });
    }
    const refused = await flood.post("/sign-in", { email: "me@example.org", password: PASSWORD });
    expect([refused.status, Number(refused.headers.get("retry-after")) > 60]).toEqual([429, true]);
    const name = `sign-in me@example.org`;
    const count = { name, max: 1, windowSeconds: 60, now: Math.floor(at.clock.unixMs() / 1000) };
    // The sign-in before the flood was the only try that counted for the e-mail.
    expect([await at.store.people.attempt({ ...count, max: 2 }), await at.store.people.attempt(count)]).toMatchObject([
      "allowed",
      { refusedSeconds: expect.any(Number) },
    ]);
  });

  test("a guesser of passwords is held up, the account's owner elsewhere is not", async () => {
    const at = await stage();
    await signedIn(at);
    const statuses = [];
    for (let tries = 0; tries < LIMITS.signInTriesMax + 1; tries += 1) {
      const form = { email: "me@example.org", password: `guess number ${tries}` };
      statuses.push((await new Browser(at).post("/sign-in", form)).status);
    }
    // One of the tries was the sign-in before.
    expect(statuses).toEqual([...Array(LIMITS.signInTriesMax - 1).fill(401), 429, 429]);
    at.clock.advance(LIMITS.attemptSeconds * 1000);
    const form = { email: "me@example.org", password: PASSWORD };
    expect(await end(new Browser(at).post("/sign-in", form))).toEqual([303, "/account"]);
  });

  test("the cookie is HttpOnly and SameSite, and Secure with the __Host- prefix behind TLS", async () => {
    const at = await stage();
    await signedIn(at);
    const cookie = async (headers: Record<string, string>) => {
      const browser = new Browser(at, headers);
      const response = await browser.post("/sign-in", { email: "me@example.org", password: PASSWORD });
      return response.headers.get("set-cookie") ?? "";
    };
    expect(await cookie({})).toMatch(/^tendon=\w{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    expect(await cookie({ "x-forwarded-proto": "https" })).toMatch(
      /^__Host-tendon=\w{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/,
    );
  });

  test("signing out ends the sign-in, not only the cookie; time ends it as well", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const thief = new Browser(at);
    thief.cookie = browser.cookie;
    expect((await thief.get("/account")).status).toBe(200);
    expect(await end(browser.post("/sign-out", { csrf: await browser.csrf() }))).toEqual([303, "/sign-in"]);
    expect([browser.cookie, (await thief.get("/account")).status]).toEqual(["", 303]);
    const again = new Browser(at);
    await again.post("/sign-in", { email: "me@example.org", password: PASSWORD });
    at.clock.advance(LIMITS.signInSeconds * 1000);
    expect((await again.get("/account")).status).toBe(303);
  });

  test("an open sign-up's e-mail is unverified; that of the operator's own link is not", async () => {
    const at = await stage({ signUpOpen: true });
    await new Browser(at).post("/welcome", {
      token: await operatorToken(at),
      email: "op@example.org",
      password: PASSWORD,
    });
    await new Browser(at).post("/sign-up", { email: "new@example.org", password: PASSWORD });
    const verified = async (email: string) => await at.store.accounts.accountByEmail(email);
    expect(await verified("op@example.org")).toMatchObject({ verified: true });
    expect(await verified("new@example.org")).toMatchObject({ verified: false });
  });

  test("sign-up is closed unless the operator opens it; an account of it has no credit and no key", async () => {
    const closed = await stage();
    const form = { email: "new@example.org", password: PASSWORD };
    expect([
      (await new Browser(closed).get("/sign-up")).status,
      (await new Browser(closed).post("/sign-up", form)).status,
    ]).toEqual([404, 404]);
    const open = await stage({ signUpOpen: true });
    const browser = new Browser(open);
    expect(await end(browser.post("/sign-up", form))).toEqual([303, "/account"]);
    expect((await new Browser(open).post("/sign-up", form)).status).toBe(422);
    const csrf = await browser.csrf();
    const response = await browser.post("/account/keys", { csrf, name: "robot" });
    expect([response.status, (await response.text()).includes("needs a payment method or credit")]).toEqual([
      422,
      true,
    ]);
  });
});

describe("the account page", () => {
  test("a key is shown whole once, works at once, and a revoked one gives 401", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const csrf = await browser.csrf();
    const page = await (await browser.post("/account/keys", { csrf, name: "arm <1>" })).text();
    const key = /tdn_\w{12}_\w{42}/.exec(page)?.[0] ?? "";
    const ask = async () => (await at.chat(observation(), { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await ask()).toBe(200);
    const later = await (await browser.get("/account")).text();
    expect([later.includes(key), later.includes(key.slice(0, 16)), later.includes("arm &lt;1&gt;")]).toEqual([
      false,
      true,
      true,
    ]);
    const prefix = key.slice(0, 16);
    expect(await end(browser.post("/account/keys/revoke", { csrf, prefix }))).toEqual([303, "/account?done=revoked"]);
    expect(await ask()).toBe(401);
  });

  test("an account has a bounded number of valid keys, and their names are plain text", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const csrf = await browser.csrf();
    const create = async (name: string) => (await browser.post("/account/keys", { csrf, name })).status;
    expect([await create("a\u0000b"), await create("\u202e")]).toEqual([422, 422]);
    const accountId = "acct_me@example.org";
    for (let index = 0; index < LIMITS.accountKeysMax; index += 1) {
      const publicId = String(index).padStart(12, "0");
      await at.store.accounts.keyAdd({ publicId, sha256: new Uint8Array(32), accountId, name: "", createdAt: 1 });
    }
    expect(await create("one more")).toBe(422);
    await browser.post("/account/keys/revoke", { csrf, prefix: `tdn_${"7".padStart(12, "0")}` });
    expect([await create("one more"), (await browser.get("/account")).status]).toEqual([200, 200]);
  });

  test("one account's page neither shows nor revokes another's keys", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const other = at.key.slice(0, 16);
    expect((await (await browser.get("/account")).text()).includes(other)).toBe(false);
    const response = await browser.post("/account/keys/revoke", { csrf: await browser.csrf(), prefix: other });
    expect([response.status, (await at.chat(observation())).status]).toEqual([422, 200]);
  });

  test("the spend limit is changed, removed, and refused where it is no amount", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const csrf = await browser.csrf();
    const limit = async (usd: string) => {
      const [status] = await end(browser.post("/account/limit", { csrf, usd }));
      const account = await at.store.accounts.accountByEmail("me@example.org");
      return [status, account && "spendLimit" in account ? account.spendLimit : "none"];
    };
    expect([await limit("12.50"), await limit("-1"), await limit("1e9"), await limit("")]).toEqual([
      [303, 12_500_000_000n],
      [422, 12_500_000_000n],
      [422, 12_500_000_000n],
      [303, undefined],
    ]);
  });

  test("a new password ends the other sign-ins; a wrong current one changes nothing", async () => {
    const at = await stage();
    const [browser, elsewhere] = [await signedIn(at), new Browser(at)];
    await elsewhere.post("/sign-in", { email: "me@example.org", password: PASSWORD });
    const csrf = await browser.csrf();
    const change = (current: string) =>
      browser.post("/account/password", { csrf, current, password: "another long one" });
    expect([(await change("wrong")).status, (await elsewhere.get("/account")).status]).toEqual([422, 200]);
    expect((await change(PASSWORD)).status).toBe(303);
    expect([(await browser.get("/account")).status, (await elsewhere.get("/account")).status]).toEqual([200, 303]);
  });
});

describe("what somebody may try", () => {
  test("a stolen cookie without its CSRF token, or another's token, changes nothing", async () => {
    const at = await stage();
    const [browser, other] = [await signedIn(at), await signedIn(at, "other@example.org")];
    const thief = new Browser(at);
    thief.cookie = browser.cookie;
    const forms = [
      ["/account/keys", { name: "x" }],
      ["/account/limit", { usd: "1" }],
      ["/account/password", { current: PASSWORD, password: "another long one" }],
      ["/device/decide", { user_code: "BCDF-GHJK", decision: "approve" }],
      ["/sign-out", {}],
    ] as const;
    for (const [path, fields] of forms) {
      const statuses = [];
      for (const csrf of ["", "x", await other.csrf()])
        statuses.push((await thief.post(path, { ...fields, csrf })).status);
      expect([path, ...statuses]).toEqual([path, 403, 403, 403]);
    }
    expect([await at.store.accounts.keysOf("acct_me@example.org"), (await browser.get("/account")).status]).toEqual([
      [],
      200,
    ]);
  });

  test("a form that another site sends is refused, even with the right token", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const csrf = await browser.csrf();
    const send = async (headers: Record<string, string>) =>
      (await browser.post("/account/limit", { csrf, usd: "1" }, headers)).status;
    expect([
      await send({ "sec-fetch-site": "cross-site" }),
      await send({ "sec-fetch-site": "same-site" }),
      await send({ origin: "https://evil.example" }),
      await send({ origin: "null" }),
      await send({ origin: "http://localhost" }),
    ]).toEqual([403, 403, 403, 403, 303]);
    const signIn = await browser.post(
      "/sign-in",
      { email: "me@example.org", password: PASSWORD },
      { "sec-fetch-site": "cross-site" },
    );
    expect(signIn.status).toBe(403);
  });

  test("an oversized form, another content type and garbage are refused in words", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    const csrf = await browser.csrf();
    const oversized = await browser.post("/account/keys", { csrf, name: "x".repeat(LIMITS.formBytesMax) });
    const json = await browser.post("/account/keys", { csrf }, { "content-type": "application/json" });
    const long = await browser.post("/account/keys", { csrf, name: "x".repeat(LIMITS.keyNameCharsMax + 1) });
    expect([oversized.status, json.status, long.status]).toEqual([413, 422, 422]);
    expect(await at.store.accounts.keysOf("acct_me@example.org")).toEqual([]);
    expect(at.service.http.ingress.bytes).toBe(0);
  });

  test("every page has the strict policy, is not kept by caches, and says nothing of others", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    for (const path of ["/account", "/device", "/sign-in", "/welcome?token=x", "/sign-up"]) {
      const { headers } = await browser.get(path);
      expect([
        path,
        headers.get("content-security-policy"),
        headers.get("cache-control"),
        headers.get("x-frame-options"),
      ]).toEqual([
        path,
        expect.stringMatching(
          /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
        ),
        "no-store",
        "DENY",
      ]);
    }
  });

  test("with the store gone a page says so instead of signing anybody in or out", async () => {
    const at = await stage();
    const browser = await signedIn(at);
    at.store.down = true;
    const statuses = [
      (await browser.get("/account")).status,
      (await browser.post("/sign-in", { email: "me@example.org", password: PASSWORD })).status,
    ];
    at.store.down = false;
    expect([...statuses, (await browser.get("/account")).status]).toEqual([503, 503, 200]);
  });
});

test("the page shows what the month of the clock has cost, whatever months the clock showed before", async () => {
  const at = await stage();
  const browser = await signedIn(at);
  const spend = async (chargeId: string, tokens: number) => {
    const rates = { prompt: 1_000_000_000n, cachedPrompt: 0n, completion: 0n };
    const work = { chargeId, accountId: "acct_me@example.org", item: "m", rates, deadlineMs: 10_000 };
    const charge = await at.service.core.charges.hold({ ...work, max: { promptTokens: tokens, completionTokens: 0 } });
    if (charge instanceof Failure) throw new Error(charge.message);
    const usage = { promptTokens: tokens, cachedTokens: 0, completionTokens: 0 };
    await at.service.core.charges.settle(charge, usage, (settlement) =>
      at.store.robot.settleChunk({ ...settlement, session: undefined, observation: undefined }),
    );
  };
  const month = async () => {
    const page = await (await browser.get("/account")).text();
    const [, spent, name] =
      /class="large">[^$]*\$([\d.]+).*?in (\w+ \d+), no limit/s.exec(page.slice(page.indexOf("Spend limit"))) ?? [];
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
