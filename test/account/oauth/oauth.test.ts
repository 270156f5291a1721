/** Device login (RFC 8628) and revocation (RFC 7009) over HTTP, and what somebody may try against them. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { observation, type Stage, stage } from "../../robot/stage.ts";
import { type Browser, signedIn, visit } from "../pages/browser.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

async function oauth(
  at: Stage,
  path: string,
  fields: Record<string, string>,
): Promise<[number, Record<string, unknown>]> {
  const body = new URLSearchParams({ client_id: "tendon-cli", ...fields });
  const response = await at.send(`/oauth/${path}`, { method: "POST", body });
  expect(response.headers.get("cache-control")).toBe("no-store");
  return [response.status, (await response.json()) as Record<string, unknown>];
}

async function begin(at: Stage): Promise<{ device: string; code: string }> {
  const [status, body] = await oauth(at, "device_authorization", { device_name: "arm\u0007 <b>" });
  expect([status, body]).toEqual([
    200,
    {
      device_code: expect.stringMatching(/^\w{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: "http://localhost/device",
      verification_uri_complete: `http://localhost/device?user_code=${body.user_code}`,
      expires_in: 900,
      interval: 5,
    },
  ]);
  return { device: String(body.device_code), code: String(body.user_code) };
}

/** The error of the next question for the key, or the key. */
async function poll(at: Stage, device: string): Promise<unknown> {
  at.clock.advance(15_000);
  const [status, body] = await oauth(at, "token", { grant_type: GRANT, device_code: device });
  expect(status).toBe(body.error === undefined ? 200 : 400);
  return body.error ?? body.access_token;
}

async function decide(browser: Browser, code: string, decision = "approve"): Promise<number> {
  return (await browser.submit("/device/decide", { user_code: code, decision })).status;
}

describe("device login", () => {
  test("a code that a person has compared and confirmed gives a key, once; a used code ends it", async () => {
    const { at, browser } = await visit();
    const { device, code } = await begin(at);
    expect(await poll(at, device)).toBe("authorization_pending");
    // The complete link only fills the field in: nothing is confirmed by opening it.
    expect(await browser.text(`/device?user_code=${code}`)).toContain(`value="${code}"`);
    expect(await poll(at, device)).toBe("authorization_pending");
    const typed = code.toLowerCase().replace("-", " ");
    const page = await (await browser.submit("/device", { user_code: typed })).text();
    for (const shown of [code, "arm", "&lt;b&gt;"]) expect(page).toContain(shown);
    expect(page).not.toContain("<b>");
    expect(await decide(browser, code)).toBe(200);
    const key = await poll(at, device);
    expect(key).toMatch(/^tdn_\w{12}_\w{42}$/);
    const ask = async () => (await at.chat(observation(), { headers: { authorization: `Bearer ${key}` } })).status;
    expect(await ask()).toBe(200);
    expect(await at.store.accounts.keysOf("acct_me@example.org")).toMatchObject([{ name: "arm  <b>" }]);
    // A second use of the code gets nothing, and the key ends: one of the two was not its device.
    expect([await poll(at, device), await ask()]).toEqual(["invalid_grant", 401]);
  });

  test("a refused code is access_denied, an old one expired_token, an unknown one invalid_grant", async () => {
    const { at, browser } = await visit();
    const refused = await begin(at);
    expect(await decide(browser, refused.code, "deny")).toBe(200);
    const late = await begin(at);
    expect(await poll(at, refused.device)).toBe("access_denied");
    at.clock.advance(LIMITS.deviceLoginSeconds * 1000);
    expect([await poll(at, late.device), await decide(browser, late.code)]).toEqual(["expired_token", 422]);
    expect([await poll(at, "x".repeat(43)), await poll(at, "x")]).toEqual(["invalid_grant", "invalid_grant"]);
  });

  test("a client that asks too often gets slow_down", async () => {
    const at = await stage();
    const { device } = await begin(at);
    const ask = async () => (await oauth(at, "token", { grant_type: GRANT, device_code: device }))[1].error;
    expect([await ask(), await ask()]).toEqual(["authorization_pending", "slow_down"]);
  });

  test("a missing parameter is invalid_request, on every route, and its name stands in the description", async () => {
    const at = await stage();
    const device = "x".repeat(43);
    const cases: [path: string, name: string, fields: Record<string, string>][] = [
      ["device_authorization", "client_id", {}],
      ["token", "client_id", { grant_type: GRANT, device_code: device }],
      ["token", "grant_type", { client_id: "tendon-cli", device_code: device }],
      ["token", "device_code", { client_id: "tendon-cli", grant_type: GRANT }],
      ["revoke", "client_id", { token: "tdn_x" }],
      ["revoke", "token", { client_id: "tendon-cli" }],
    ];
    for (const [path, name, fields] of cases) {
      for (const body of [new URLSearchParams(fields), new URLSearchParams({ ...fields, [name]: "" })]) {
        const response = await at.send(`/oauth/${path}`, { method: "POST", body });
        const told = { error: "invalid_request", error_description: expect.stringContaining(`${name} is missing`) };
        expect([path, name, response.status, await response.json()]).toEqual([path, name, 400, told]);
      }
    }
  });

  test("a parameter that is sent twice, in the form, the address or both, is invalid_request; one without a value is not sent", async () => {
    const at = await stage();
    const ask = async (path: string, query: string, body: string) => {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const response = await at.send(`/oauth/${path}${query}`, { method: "POST", headers, body });
      return [response.status, ((await response.json()) as { error?: string }).error];
    };
    const good = "client_id=tendon-cli&token=tdn_x";
    for (const path of ["device_authorization", "token", "revoke"]) {
      for (const [query, body] of [
        ["", `${good}&client_id=tendon-cli`],
        ["", `${good}&token=other`],
        ["", `${good}&x=1&x=1`],
        ["?client_id=tendon-cli", good],
        ["?x=1&x=2", good],
      ] as const)
        expect([path, query, body, ...(await ask(path, query, body))]).toEqual([
          path,
          query,
          body,
          400,
          "invalid_request",
        ]);
    }
    expect(await ask("revoke", "?client_id=&x=1", `client_id=&${good}&y=&y=`)).toEqual([200, undefined]);
  });

  const device = { grant_type: GRANT, device_code: "x".repeat(43) };
  test.each<[path: string, fields: Record<string, string>, status: number, error: string, down?: boolean]>([
    ["device_authorization", { client_id: "other" }, 401, "invalid_client"],
    ["token", { grant_type: "password" }, 400, "unsupported_grant_type"],
    ["revoke", {}, 400, "invalid_request"],
    ["revoke", { token: "x".repeat(LIMITS.formBytesMax) }, 400, "invalid_request"],
    ["device_authorization", {}, 503, "temporarily_unavailable", true],
    ["token", device, 503, "temporarily_unavailable", true],
  ])("an error of %s has the form of RFC 6749 (%#)", async (path, fields, status, error, down = false) => {
    const at = await stage();
    at.store.down = down;
    expect(await oauth(at, path, fields)).toEqual([status, { error, error_description: expect.any(String) }]);
  });
});

describe("what somebody may try", () => {
  test("a replayed approval decides nothing: a code is decided once", async () => {
    const { at, browser } = await visit();
    const other = await signedIn(at, "other@example.org");
    const { device, code } = await begin(at);
    expect(await decide(browser, code, "deny")).toBe(200);
    expect([await decide(browser, code), await decide(other, code)]).toEqual([422, 422]);
    expect(await poll(at, device)).toBe("access_denied");
  });

  test("an approval ends with the sign-in that gave it", async () => {
    const { at, browser } = await visit();
    const { device, code } = await begin(at);
    await decide(browser, code);
    await browser.submit("/sign-out", {});
    expect(await poll(at, device)).toBe("access_denied");
  });

  test("an account without payment method and credit cannot approve; one that lost its credit meanwhile gets no key", async () => {
    const { at, browser } = await visit();
    const poor = await signedIn(at, "poor@example.org", 0n);
    const { device, code } = await begin(at);
    expect(await decide(poor, code)).toBe(422);
    expect(await decide(browser, code)).toBe(200);
    const back = { accountId: "acct_me@example.org", transferId: "t", amount: -(10n ** 12n), at: 1, month: 197_001 };
    await at.store.charges.credit(back);
    expect(await poll(at, device)).toBe("access_denied");
    expect(await at.store.accounts.keysOf("acct_me@example.org")).toEqual([]);
  });

  test("a code guesser is stopped after some tries, also with several accounts from one address", async () => {
    const { at, browser: first } = await visit();
    const { code } = await begin(at);
    const statuses: number[] = [];
    const guess = async (browser: Browser, count: number, typed = "BBBB-BBBB") => {
      for (let tries = 0; tries < count; tries += 1) {
        // The confirming form is one to guess with as well.
        const [path, decision] = tries % 2 === 0 ? ["/device", ""] : ["/device/decide", "deny"];
        statuses.push((await browser.submit(path, { user_code: typed, decision })).status);
      }
    };
    await guess(first, LIMITS.codeTriesMax);
    // The right code does not help any more.
    await guess(first, 1, code);
    expect(statuses).toEqual([...Array(LIMITS.codeTriesMax).fill(422), 429]);
    for (const name of ["b", "c", "d"]) await guess(await signedIn(at, `${name}@example.org`), LIMITS.codeTriesMax);
    const allowed = statuses.filter((status) => status === 422).length;
    // The try that the first account was refused for was one of its network.
    expect([allowed, statuses.at(-1)]).toEqual([LIMITS.codeNetworkTriesMax - 1, 429]);
  });

  test("device logins that one address begins are bounded", async () => {
    const at = await stage();
    const statuses = [];
    for (let tries = 0; tries <= LIMITS.deviceTriesMax; tries += 1) {
      statuses.push((await oauth(at, "device_authorization", {}))[0]);
    }
    expect([statuses.indexOf(503), statuses.length]).toEqual([LIMITS.deviceTriesMax, LIMITS.deviceTriesMax + 1]);
  });
});

describe("revocation", () => {
  test("everyone who has the key ends it; a wrong secret, an unknown key and a second time change nothing and are 200", async () => {
    const at = await stage();
    const ask = async () => (await at.chat(observation())).status;
    const last = at.key.slice(-1) === "0" ? "1" : "0";
    expect([await oauth(at, "revoke", { token: at.key.slice(0, -1) + last }), await ask()]).toEqual([[200, {}], 200]);
    expect(await oauth(at, "revoke", { token: "nonsense" })).toEqual([200, {}]);
    expect([await oauth(at, "revoke", { token: at.key }), await ask()]).toEqual([[200, {}], 401]);
    expect(await oauth(at, "revoke", { token: at.key, token_type_hint: "access_token" })).toEqual([200, {}]);
  });
});
