/** Identities of a provider (contract section 6): the proof anew after 10 minutes, connecting and disconnecting. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { present } from "../../../src/std/assert.ts";
import { type Issuer, type Known, startIssuer } from "../issuer.ts";
import { Browser, PASSWORD, signedIn } from "./browser.ts";
import { ANN, atProvider, BACK, comesBack, connects, outcome, type StandOptions, standAt } from "./provider.ts";

let issuer: Issuer;
beforeAll(async () => {
  issuer = await startIssuer(() => [BACK]);
});
afterAll(() => issuer[Symbol.asyncDispose]());

const stand = (people: Readonly<Record<string, Known>>, options?: StandOptions) => standAt(issuer, people, options);

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
    // Another site brings the browser the cookie and the answer for another person.
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
    const [shown = ""] = /<strong><bdi>ann@example.org<\/bdi>.*/.exec(await owner.text("/account")) ?? [];
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
