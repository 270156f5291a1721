/** A person's way to a real OpenID provider and back. */
import { expect } from "bun:test";
import { present } from "../../../src/std/assert.ts";
import { stage } from "../../robot/stage.ts";
import { CLIENT, type Issuer, type Known } from "../issuer.ts";
import type { Browser } from "./browser.ts";

export const BACK = "http://localhost/sign-in/oidc/back";

export interface StandOptions {
  readonly signUpOpen?: boolean;
  readonly url?: string;
}

/** A service whose provider knows `people`, by the names that they type there. */
export async function standAt(issuer: Issuer, people: Readonly<Record<string, Known>>, options: StandOptions = {}) {
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
export async function atProvider(start: string, name: string): Promise<string> {
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
export async function comesBack(browser: Browser, name: string, query = "?next=%2Faccount"): Promise<Response> {
  const start = await browser.get(`/sign-in/oidc${query}`);
  const back = await atProvider(present(start.headers.get("location") ?? undefined, "where to sign in"), name);
  return await browser.get(back.slice("http://localhost".length));
}

/** The person connects the signed-in account with who they are at the provider; what our page answers at the end. */
export async function connects(browser: Browser, name: string, fields: Record<string, string> = {}): Promise<Response> {
  const page = await browser.submit("/account/identities", fields);
  expect(await page.text()).toContain("goes on to the provider");
  const [, url = ""] = /^0; url=(\S+)$/.exec(page.headers.get("refresh") ?? "") ?? [];
  return await browser.get((await atProvider(url, name)).slice("http://localhost".length));
}

export async function outcome(response: Response): Promise<(string | number | null)[]> {
  const text = /<p[^>]*>([^<]+)<\/p>/.exec((await response.text()).split("</h1>")[1] ?? "")?.[1] ?? null;
  return [response.status, response.headers.get("location"), text];
}

export const ANN = { ann: { email: "Ann@example.org", email_verified: true } };
