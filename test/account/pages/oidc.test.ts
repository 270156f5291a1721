/** Sign-in with an OpenID provider, against a real one: who comes in, as whom, and what somebody may try against it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { type Stage, stage } from "../../robot/stage.ts";
import { funded } from "../fake-store.ts";
import { type Issuer, type Known, startIssuer } from "../issuer.ts";
import { Browser, PASSWORD, signedIn } from "./browser.ts";
import { ANN, atProvider, BACK, comesBack, connects, outcome, type StandOptions, standAt } from "./provider.ts";

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer(() => [BACK]);
});
afterAll(() => issuer[Symbol.asyncDispose]());

const stand = (people: Readonly<Record<string, Known>>, options?: StandOptions) => standAt(issuer, people, options);

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
    expect(await ann.text("/account")).toContain("<strong><bdi>ann@example.org</bdi></strong>");
  });
});

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
