/** How tries to sign in are counted (contract section 13): by address, by IPv6 /48, and apart for a browser that has signed in before. */
import { describe, expect, test } from "bun:test";
import { sha256 } from "../../../src/account/secret.ts";
import { LIMITS } from "../../../src/limits.ts";
import { siteOf } from "../../../src/std/networks.ts";
import { type Stage, stage } from "../../robot/stage.ts";
import { Browser, PASSWORD, signedIn, visit } from "./browser.ts";

const EMAIL = "me@example.org";
const ID = `acct_${EMAIL}`;

/** The account's tries and those of this network are used up, as by strangers who fail on purpose. */
async function lockOut(at: Stage, email = EMAIL): Promise<void> {
  const now = Math.floor(at.clock.seenMs() / 1000);
  for (let tries = 0; tries <= LIMITS.emailTriesMax; tries += 1)
    await at.store.people.attempt({ name: `sign-in ${email}`, max: 1, windowSeconds: LIMITS.attemptSeconds, now });
  const stranger = await new Browser(at).post("/sign-in", { email, password: PASSWORD });
  expect(stranger.status).toBe(429);
}

const enter = async (browser: Browser, email = EMAIL, password = PASSWORD) =>
  (await browser.post("/sign-in", { email, password })).status;

test("sign-in tries of one IPv6 /48 are at most 400 in 15 minutes, with a password and with a provider", async () => {
  const { people } = (await stage()).service;
  const network = (site: number, subnet: number) => `2001:db8:${site}:${subnet.toString(16)}::/64`;
  const provider = async (site: number, subnet: number) =>
    (await people.triedProvider("provider", network(site, subnet)))?.kind;
  for (let tries = 0; tries < 400; tries += 1) expect(await provider(7, tries % 100)).toBeUndefined();
  expect([await provider(7, 200), await provider(8, 200)]).toEqual(["tooMany", undefined]);

  const at = await stage();
  const typed = { email: EMAIL, password: "wrong password" };
  const signIn = async (site: number, subnet: number) => {
    const outcome = await at.service.people.signIn({ ...typed, network: network(site, subnet) });
    return "kind" in outcome && outcome.kind;
  };
  // Tries above those of an e-mail cost no hash; they count for the network.
  for (let tries = 0; tries < 400; tries += 1) await signIn(7, tries);
  const other = { ...typed, email: "other@example.org" };
  const outcome = await at.service.people.signIn({ ...other, network: network(7, 999) });
  expect(outcome).toMatchObject({ kind: "tooMany" });
  expect(await at.service.people.signIn({ ...other, network: network(8, 999) })).toMatchObject({
    kind: "signInFailed",
  });
  at.clock.jump(86_400_000);
  expect(await signIn(7, 1_000)).toBe("tooMany");
  at.clock.advance(LIMITS.attemptSeconds * 1000);
  expect(await signIn(7, 1_000)).toBe("signInFailed");
  expect([siteOf("2001:db8:7:1::/64"), siteOf("198.51.100.7")]).toEqual(["2001:db8:7::/48", undefined]);
}, 30_000);

describe("a browser that has signed in before", () => {
  test("has tries apart from those of strangers, who cannot lock the person out, also after a sign-out", async () => {
    const { at, browser } = await visit();
    expect((await browser.submit("/sign-out", {})).status).toBe(303);
    await lockOut(at);
    expect(await enter(browser)).toBe(303);
    expect(await browser.status("/account")).toBe(200);
    // Its own tries are bounded as well, and the time that passes frees them.
    await browser.submit("/sign-out", {});
    for (let tries = 0; tries < LIMITS.signInTriesMax; tries += 1)
      expect(await enter(browser, EMAIL, "wrong")).toBe(401);
    expect(await enter(browser)).toBe(429);
    at.clock.advance(LIMITS.attemptSeconds * 1000);
    expect(await enter(browser)).toBe(303);
  });

  test("is known for its person alone, and a cookie that is forged or cut is none", async () => {
    const { at, browser } = await visit();
    await signedIn(at, "other@example.org");
    await lockOut(at, "other@example.org");
    expect(await enter(browser, "other@example.org")).toBe(429);
    await lockOut(at);
    const [known = ""] = browser.cookie.match(/tendon-known=[^;]+/) ?? [];
    const [id = "", signature = ""] = known.slice("tendon-known=".length).split(".");
    expect([id.length, signature.length]).toEqual([43, 43]);
    const other = `${"x".repeat(43)}.${signature}`;
    for (const value of [
      other,
      id,
      `${id}.`,
      `${id}.${"x".repeat(43)}`,
      `.${signature}`,
      "x".repeat(5_000),
      "\u00e9.",
    ]) {
      const thief = new Browser(at);
      thief.cookie = `tendon-known=${value}`;
      expect([value, await enter(thief)]).toEqual([value, 429]);
    }
    const copy = new Browser(at);
    copy.cookie = known;
    expect(await enter(copy)).toBe(303);
    expect(JSON.stringify(at.store.rows("SELECT name FROM attempts"))).not.toContain(signature);
  });

  test("is known no more after a reset, and anew where the password was changed", async () => {
    const { at, browser } = await visit();
    const elsewhere = new Browser(at);
    await enter(elsewhere);
    const next = "another long one";
    await browser.submit("/account/password", { current: PASSWORD, password: next });
    await browser.submit("/sign-out", {});
    await lockOut(at);
    expect([await enter(elsewhere, EMAIL, next), await enter(browser, EMAIL, next)]).toEqual([429, 303]);
    const link = { tokenSha256: sha256("x"), kind: "password", accountId: ID, expiresAt: 1 } as const;
    await at.store.people.passwordReset({ link, password: "no hash", revokeKeys: false, now: 1 });
    expect(await enter(browser, EMAIL, next)).toBe(429);
  });

  test("keeps it in a cookie of its host that scripts cannot read and that TLS alone carries", async () => {
    const { at } = await visit();
    const cookies = async (headers: Record<string, string>) =>
      (await new Browser(at, headers).post("/sign-in", { email: EMAIL, password: PASSWORD })).headers.getSetCookie();
    const known = String.raw`tendon-known=\w{43}\.[\w-]{43}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax`;
    expect(await cookies({})).toEqual([
      expect.stringMatching(/^tendon=/),
      expect.stringMatching(new RegExp(`^${known}$`)),
    ]);
    expect((await cookies({ "x-forwarded-proto": "https" }))[1]).toMatch(new RegExp(`^__Host-${known}; Secure$`));
  });
});

test("a person who is signed in proves it though strangers at the same address have used up its tries", async () => {
  const { at, browser } = await visit();
  at.clock.advance((LIMITS.signInFreshSeconds + 1) * 1000);
  for (let tries = 0; tries < LIMITS.networkTriesMax; tries += 1)
    await new Browser(at).post("/sign-in", { email: `${tries % 3}@example.org`, password: "" });
  const made = await browser.submit("/account/keys", { name: "arm", confirm: PASSWORD });
  expect([made.status, await made.text()]).toEqual([200, expect.stringContaining("Your new key")]);
});
