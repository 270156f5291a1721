/** Sign-in with an OpenID provider, against a real one: who comes in, as whom, and what somebody may try against it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { present } from "../../../src/std/assert.ts";
import { type Stage, stage } from "../../robot/stage.ts";
import { funded } from "../fake-store.ts";
import { CLIENT, type Issuer, type Known, startIssuer } from "../issuer.ts";
import { Browser, PASSWORD, signedIn } from "./browser.ts";

const BACK = "http://localhost/sign-in/oidc/back";

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer(() => [BACK]);
});
afterAll(() => issuer[Symbol.asyncDispose]());

/** A service whose provider knows `people`, by the names that they type there. */
async function stand(people: Readonly<Record<string, Known>>, options: { signUpOpen?: boolean; url?: string } = {}) {
  issuer.people.clear();
  for (const [name, known] of Object.entries(people)) issuer.people.set(name, known);
  const { signUpOpen = false, url = issuer.url } = options;
  const oidc = {
    issuer: url,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    name: "Lab Login",
    scopes: "openid email",
  };
  return await stage({ signUpOpen, oidc });
}

/** What the provider's page does with a name; the address that it sends the browser back to. */
async function atProvider(start: string, name: string): Promise<string> {
  const jar = new Map<string, string>();
  const ask = async (url: string, form?: Record<string, string>) => {
    const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
    const body = form && { method: "POST", body: new URLSearchParams(form) };
    const response = await fetch(url, { redirect: "manual", headers: { cookie }, ...body });
    for (const set of response.headers.getSetCookie()) {
      const [, key = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      jar.set(key, value);
    }
    return response;
  };
  let [url, response] = [start, await ask(start)];
  for (let steps = 0; steps < 12; steps += 1) {
    const to = response.headers.get("location");
    if (to !== null) {
      url = new URL(to, url).href;
      if (url.startsWith(BACK)) return url;
      response = await ask(url);
      continue;
    }
    const page = await response.text();
    const action = new URL(present(/action="([^"]+)"/.exec(page)?.[1], "the form of the provider"), url).href;
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? "";
    response = await ask(action, { prompt, login: name, password: "x" });
  }
  throw new Error("the provider does not come to an end");
}

/** The browser goes to the provider as `name` and comes back; what our page answers then. */
async function comesBack(browser: Browser, name: string, query = "?next=%2Faccount"): Promise<Response> {
  const start = await browser.get(`/sign-in/oidc${query}`);
  const back = await atProvider(present(start.headers.get("location") ?? undefined, "where to sign in"), name);
  return await browser.get(back.slice("http://localhost".length));
}

/** The person connects the signed-in account with who they are at the provider; what our page answers at the end. */
async function connects(browser: Browser, name: string, fields: Record<string, string> = {}): Promise<Response> {
  const page = await browser.submit("/account/identities", fields);
  expect(await page.text()).toContain("goes on to the provider");
  const [, url = ""] = /^0; url=(\S+)$/.exec(page.headers.get("refresh") ?? "") ?? [];
  return await browser.get((await atProvider(url, name)).slice("http://localhost".length));
}

async function outcome(response: Response): Promise<(string | number | null)[]> {
  const text = /<p[^>]*>([^<]+)<\/p>/.exec((await response.text()).split("</h1>")[1] ?? "")?.[1] ?? null;
  return [response.status, response.headers.get("location"), text];
}

const ANN = { ann: { email: "Ann@example.org", email_verified: true } };

/** Accounts by e-mail. */
function accounts(at: Stage) {
  return at.store.rows<{ email: string }>("SELECT email FROM accounts ORDER BY email").map(({ email }) => email);
}

describe("somebody whom the provider knows", () => {
  test("gets an account where sign-up is open, and the same one each time, whatever e-mail the provider tells later", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    expect((await comesBack(new Browser(at), "ann")).status).toBe(303);
    issuer.people.set("ann", { email: "ann.b@example.org", email_verified: true });
    const browser = new Browser(at);
    const back = await comesBack(browser, "ann", "?next=%2Fdevice%3Fuser_code%3DBCDF-GHJK");
    expect([back.status, back.headers.get("location")]).toEqual([303, "/device?user_code=BCDF-GHJK"]);
    expect(await browser.text("/account")).toContain("ann@example.org");
    expect(accounts(at)).toEqual(["acct_1@example.org", "ann@example.org"]);
  });

  test("gets none where sign-up is closed", async () => {
    const at = await stand(ANN);
    const browser = new Browser(at);
    expect(await outcome(await comesBack(browser, "ann"))).toEqual([403, null, expect.stringContaining("no account")]);
    expect([await browser.status("/account"), accounts(at)]).toEqual([303, ["acct_1@example.org"]]);
  });

  test("comes to the operator's account for that e-mail", async () => {
    const at = await stand(ANN);
    // The operator made the account; it has no password yet.
    await at.store.accounts.accountAdd(funded("acct_ann", "ann@example.org"));
    const browser = new Browser(at);
    expect((await comesBack(browser, "ann")).status).toBe(303);
    expect(await browser.text("/account")).toContain("ann@example.org");
  });

  test("does not come to an account with a password: its person connects it first, and then both ways lead to it", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    const owner = await signedIn(at, "ann@example.org");
    const stranger = new Browser(at);
    expect(await outcome(await comesBack(stranger, "ann"))).toEqual([
      403,
      null,
      expect.stringContaining("Sign in to it as before, then connect it"),
    ]);
    expect(await stranger.status("/account")).toBe(303);
    // A signed-in person's account is connected only by its form.
    expect((await comesBack(owner, "ann", "?next=%2Faccount&purpose=connect")).status).toBe(403);
    expect((await connects(owner, "ann")).headers.get("location")).toBe("/account?done=connected");
    const later = new Browser(at);
    expect((await comesBack(later, "ann")).status).toBe(303);
    expect(await later.text("/account")).toContain("ann@example.org");
  });

  test("does not come to an account that another person of the provider is connected with, though it has the e-mail now", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    expect((await comesBack(new Browser(at), "ann")).status).toBe(303);
    issuer.people.set("newcomer", { email: "ann@example.org", email_verified: true });
    const newcomer = new Browser(at);
    expect((await comesBack(newcomer, "newcomer")).status).toBe(403);
    expect(await newcomer.status("/account")).toBe(303);
  });

  test("is out again after a reset or when the keys are revoked", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    const owner = await signedIn(at, "bob@example.org");
    expect((await connects(owner, "ann")).status).toBe(303);
    const form = { current: PASSWORD, password: "another long password", keys: "revoke" };
    expect((await owner.submit("/account/password", form)).status).toBe(303);
    const later = new Browser(at);
    await comesBack(later, "ann");
    expect(await later.text("/account")).not.toContain("bob@example.org");
  });

  test("stays in the account that is connected, also when another one asks to connect it", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    await comesBack(new Browser(at), "ann");
    const other = await signedIn(at, "bob@example.org");
    expect(await outcome(await connects(other, "ann"))).toEqual([
      403,
      null,
      expect.stringContaining("connected with another account"),
    ]);
    expect(await other.text("/account")).toContain("No person of a provider");
    const ann = new Browser(at);
    await comesBack(ann, "ann");
    expect(await ann.text("/account")).toContain("<bdi>ann@example.org</bdi><br>");
  });
});

describe("a sign-in by a provider is stale after 10 minutes like any other", () => {
  const AGAIN = "?purpose=again&next=%2Faccount";
  const bob = { email: "bob@example.org", email_verified: true };

  /** Ann, who has no password, signed in more than 10 minutes ago. */
  async function stale() {
    const at = await stand({ ...ANN, bob }, { signUpOpen: true });
    // The provider's clock shows the present.
    at.clock.jump(Date.now() - at.clock.unixMs());
    const browser = new Browser(at);
    await comesBack(browser, "ann");
    await at.store.accounts.spendLimit({ accountId: "acct_1", limit: undefined });
    const { id: accountId } = present(
      at.store.rows<{ id: string }>("SELECT id FROM accounts WHERE email = 'ann@example.org'")[0],
      "ann",
    );
    await at.store.accounts.accountSet({ accountId, paymentMethod: true });
    at.clock.advance((LIMITS.signInFreshSeconds + 1) * 1000);
    at.clock.jump(-(LIMITS.signInFreshSeconds + 1) * 1000);
    const made = async () => {
      const answer = await browser.submit("/account/keys", { name: "arm" });
      return [answer.status, /once more|Your new key/.exec(await answer.text())?.[0]];
    };
    return { at, browser, made };
  }

  test("its page leads to the provider, which asks anew; then a key is made", async () => {
    const { browser, made } = await stale();
    expect(await made()).toEqual([422, "once more"]);
    const page = await browser.text("/account");
    expect(page).toContain(
      '<a href="/sign-in/oidc?purpose=again&amp;next=%2Faccount">sign in with Lab Login again</a>',
    );
    expect([page.includes('name="confirm"'), page.includes('action="/account/keys"')]).toEqual([false, false]);
    const start = new URL((await browser.get(`/sign-in/oidc${AGAIN}`)).headers.get("location") ?? "");
    expect([start.searchParams.get("prompt"), start.searchParams.get("max_age")]).toEqual(["login", "600"]);
    const back = await comesBack(browser, "ann", AGAIN);
    expect([back.status, back.headers.get("location")]).toEqual([303, "/account"]);
    expect(await made()).toEqual([200, "Your new key"]);
  });

  test("another person of the provider proves nothing, nor does one whom it asked long ago", async () => {
    const { at, browser, made } = await stale();
    expect(await outcome(await comesBack(browser, "bob", AGAIN))).toEqual([
      403,
      null,
      expect.stringMatching(/not connected/),
    ]);
    at.clock.jump((LIMITS.signInFreshSeconds + 60) * 1000);
    expect(await outcome(await comesBack(browser, "ann", AGAIN))).toEqual([
      403,
      null,
      expect.stringMatching(/ask you anew/),
    ]);
    expect(await made()).toEqual([422, "once more"]);
    expect(await browser.text("/account")).toContain("ann@example.org");
  });

  test("where single sign-on asked long ago, it is stale from the start", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    const enter = async (age: number) => {
      const askedAt = Math.floor(at.clock.unixMs() / 1000) - age;
      const identity = { issuer: "https://id.example", subject: "1", email: "c@example.org", askedAt };
      const token = await at.service.identities.enter(identity);
      return typeof token === "string" && (await at.service.people.person(token));
    };
    expect(await enter(600)).toMatchObject({ stale: false, hasPassword: false, hasIdentity: true });
    expect(await enter(601)).toMatchObject({ stale: true });
    expect(await enter(-3_600)).toMatchObject({ stale: false });
  });

  test("who has a password as well may give either, also for a device", async () => {
    const at = await stand(ANN);
    const owner = await signedIn(at, "bob@example.org");
    await connects(owner, "ann");
    at.clock.advance((LIMITS.signInFreshSeconds + 1) * 1000);
    const page = await owner.text("/account");
    expect([page.match(/name="confirm"/g)?.length, page.match(/Lab Login again/g)?.length]).toEqual([2, 2]);
    const body = new URLSearchParams({ client_id: "tendon-cli", device_name: "arm" });
    const begun = await at.send("/oauth/device_authorization", { method: "POST", body });
    const { user_code } = (await begun.json()) as { user_code: string };
    const confirm = await (await owner.submit("/device", { user_code })).text();
    expect(confirm).toContain(`/sign-in/oidc?purpose=again&amp;next=%2Fdevice%3Fuser_code%3D${user_code}`);
    await comesBack(owner, "ann", `?purpose=again&next=%2Fdevice%3Fuser_code%3D${user_code}`);
    expect((await owner.submit("/device/decide", { user_code, decision: "approve" })).status).toBe(200);
  });
});

describe("connecting and disconnecting an identity", () => {
  test("takes the token of the form, from the click to the answer of the provider", async () => {
    const at = await stand(ANN);
    const owner = await signedIn(at, "bob@example.org");
    const foreign = [
      await owner.post("/account/identities", {}),
      await owner.post("/account/identities", { csrf: "x" }),
    ];
    expect(foreign.map(({ status }) => status)).toEqual([403, 403]);
    // Another site brings the browser the cookie and the answer of its own person.
    const start = new Browser(at);
    const begun = await start.get("/sign-in/oidc");
    const back = (await atProvider(begun.headers.get("location") ?? "", "ann")).slice("http://localhost".length);
    const [, value = ""] = /tendon-oidc=([^;]+)/.exec(start.cookie) ?? [];
    const kept = JSON.parse(Buffer.from(value, "base64url").toString());
    for (const csrf of ["", "x", await (await signedIn(at)).csrf()]) {
      const forged = Buffer.from(JSON.stringify({ ...kept, purpose: "connect", csrf })).toString("base64url");
      owner.cookie = `tendon-oidc=${forged}`;
      expect(await owner.status(back)).toBe(422);
    }
    expect(await owner.text("/account")).toContain("No person of a provider");
    expect((await connects(owner, "ann")).status).toBe(303);
    const [, shown = ""] =
      /<dl class="facts">\s*<div><dt>(<bdi>ann.*?)<\/dl>/s.exec(await owner.text("/account")) ?? [];
    expect(shown).toContain(issuer.url);
  });

  test("asks for a proof that is at most 10 minutes old, also when the provider answers", async () => {
    const at = await stand(ANN);
    const owner = await signedIn(at, "bob@example.org");
    const page = await owner.submit("/account/identities", {});
    const [, url = ""] = /url=(\S+)/.exec(page.headers.get("refresh") ?? "") ?? [];
    const back = (await atProvider(url, "ann")).slice("http://localhost".length);
    at.clock.advance((LIMITS.signInFreshSeconds + 1) * 1000);
    expect(await owner.status(back)).toBe(403);
    expect((await owner.submit("/account/identities", {})).status).toBe(422);
    expect((await owner.submit("/account/identities", { confirm: "wrong" })).status).toBe(422);
    expect((await connects(owner, "ann", { confirm: PASSWORD })).status).toBe(303);
    at.clock.advance((LIMITS.signInFreshSeconds + 1) * 1000);
    const identity = identityOf(await owner.text("/account"));
    const end = async (fields: Record<string, string>) =>
      (await owner.submit("/account/identities/disconnect", { identity, ...fields })).status;
    expect([await end({}), await end({ confirm: "wrong" }), await end({ confirm: PASSWORD })]).toEqual([422, 422, 303]);
    expect(await owner.text("/account?done=disconnected")).toContain("No person of a provider");
  });

  test("ends its other sign-ins, never the last way to sign in, and nobody else's", async () => {
    const at = await stand({ ...ANN, ann2: { email: "ann@work.example", email_verified: true } }, { signUpOpen: true });
    const [ann, other] = [new Browser(at), new Browser(at)];
    for (const browser of [ann, other]) await comesBack(browser, "ann");
    const bob = await signedIn(at, "bob@example.org");
    const first = identityOf(await ann.text("/account"));
    const end = async (browser: Browser, identity: string) =>
      await browser.submit("/account/identities/disconnect", { identity });
    const refused = await end(ann, first);
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining("no other way to sign in")]);
    for (const identity of [first, "", "x", " "]) await end(bob, identity);
    expect(await other.status("/account")).toBe(200);
    expect((await connects(ann, "ann2")).status).toBe(303);
    expect(await ann.text("/account")).toContain("ann@work.example");
    expect((await end(ann, first)).headers.get("location")).toBe("/account?done=disconnected");
    expect([await ann.status("/account"), await other.status("/account"), await bob.status("/account")]).toEqual([
      200, 303, 200,
    ]);
    expect((await end(ann, identityOf(await ann.text("/account")))).status).toBe(422);
  });
});

/** The value of the first button that disconnects. */
function identityOf(page: string): string {
  return present(/name="identity" value="([^"]+)"/.exec(page)?.[1], "a button that disconnects");
}

describe("is refused with a sentence, and signs nobody in", () => {
  const cases: readonly [name: string, known: Known, says: string][] = [
    ["an e-mail that is not verified", { email: "ann@example.org", email_verified: false }, "not verified your e-mail"],
    ["an e-mail of which nothing is said", { email: "ann@example.org" }, "not verified your e-mail"],
    ["no e-mail", {}, "did not send your e-mail"],
  ];
  for (const [name, known, says] of cases) {
    test(name, async () => {
      const at = await stand({ ann: known }, { signUpOpen: true });
      const browser = new Browser(at);
      expect(await outcome(await comesBack(browser, "ann"))).toEqual([422, null, expect.stringContaining(says)]);
      expect([await browser.status("/account"), accounts(at).length]).toEqual([303, 1]);
    });
  }

  test("a person who says no at the provider", async () => {
    const at = await stand(ANN);
    const browser = new Browser(at);
    await browser.get("/sign-in/oidc");
    const response = await browser.get("/sign-in/oidc/back?error=access_denied&state=x");
    expect(await outcome(response)).toEqual([422, null, expect.stringContaining("did not sign you in")]);
  });

  test("an answer to another browser, a wrong state, a code that was used, a cookie that is garbage", async () => {
    const at = await stand(ANN, { signUpOpen: true });
    const [one, other] = [new Browser(at), new Browser(at)];
    const start = await one.get("/sign-in/oidc");
    const back = (await atProvider(start.headers.get("location") ?? "", "ann")).slice("http://localhost".length);
    expect(await other.status(back)).toBe(422);
    await other.get("/sign-in/oidc");
    expect(await other.status(back)).toBe(401);
    expect(await one.status(back.replace(/state=[^&]+/, "state=x"))).toBe(401);
    expect(await one.status(back)).toBe(303);
    expect(await one.status(back)).toBe(401);
    for (const value of ["", "x", Buffer.from("{}").toString("base64url"), Buffer.from("null").toString("base64url")]) {
      const response = await at.send(back, { headers: { cookie: `tendon-oidc=${value}` } });
      expect([response.status, response.headers.get("set-cookie")]).toEqual([422, null]);
    }
    expect(await other.status("/account")).toBe(303);
  });

  test("answers that nobody asked for, without end: after the network's share the provider is left alone", async () => {
    const at = await stand(ANN);
    const kept = { state: "a", nonce: "a", verifier: "a", next: "/account", purpose: "enter", csrf: "" };
    const cookie = `tendon-oidc=${Buffer.from(JSON.stringify(kept)).toString("base64url")}`;
    const statuses: number[] = [];
    for (let tries = 0; tries < LIMITS.networkTriesMax + 2; tries += 1) {
      statuses.push((await at.send("/sign-in/oidc/back?code=x&state=a", { headers: { cookie } })).status);
    }
    expect(statuses.slice(-3)).toEqual([401, 429, 429]);
  });

  test("a provider that does not answer: 503, asked again soon; the password still works, and so does the service", async () => {
    const at = await stand(ANN, { url: "http://127.0.0.1:9" });
    const response = await new Browser(at).get("/sign-in/oidc");
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await (await signedIn(at)).status("/account")).toBe(200);
  });

  test("where no provider is configured", async () => {
    const browser = new Browser(await stage());
    expect(await browser.status("/sign-in/oidc")).toBe(404);
    expect(await browser.status("/sign-in/oidc/back?code=1")).toBe(404);
    expect(await browser.text("/sign-in")).not.toContain("/sign-in/oidc");
  });
});

test("the page names the provider; where it leads is asked for once an hour; a next elsewhere is not followed", async () => {
  const at = await stand(ANN, { signUpOpen: true });
  expect(await new Browser(at).text("/sign-in?next=%2Fdevice")).toContain(
    '<a href="/sign-in/oidc?next=%2Fdevice">Sign in with Lab Login</a>',
  );
  const before = issuer.discovered();
  for (let tries = 0; tries < 3; tries += 1) {
    const back = await comesBack(new Browser(at), "ann", "?next=https%3A%2F%2Fevil.example%2F");
    expect(back.headers.get("location")).toBe("/account");
  }
  expect(issuer.discovered() - before).toBe(1);
});

test("the proof goes over PKCE, with a new state and nonce each time, in a cookie that scripts cannot read", async () => {
  const at = await stand(ANN);
  const seen = new Set<string>();
  for (let tries = 0; tries < 2; tries += 1) {
    const start = await new Browser(at, { "x-forwarded-proto": "https" }).get("/sign-in/oidc");
    const query = new URL(start.headers.get("location") ?? "").searchParams;
    expect(query.get("code_challenge_method")).toBe("S256");
    for (const name of ["state", "nonce", "code_challenge"]) seen.add(query.get(name) ?? "");
    expect(start.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Lax/);
  }
  expect(seen.size).toBe(6);
});
