/** A browser without a window: it keeps cookies, follows nothing, and sends forms as our pages have them. */
import { present } from "../../../src/std/assert.ts";
import { type Stage, stage } from "../../robot/stage.ts";
import { funded } from "../fake-store.ts";

/** The part of a stage that a browser needs. */
interface Site {
  readonly send: Stage["send"];
  readonly store: { readonly accounts: Pick<Stage["store"]["accounts"], "accountAdd"> };
}

export class Browser {
  /** Values by name. */
  private readonly cookies = new Map<string, string>();

  constructor(
    private readonly at: Pick<Site, "send">,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async get(path: string): Promise<Response> {
    return this.keep(await this.at.send(path, { headers: this.sent() }));
  }

  async post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
    const body = new URLSearchParams(fields).toString();
    const form = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };
    return this.keep(
      await this.at.send(path, { method: "POST", body, headers: { ...form, ...this.sent(), ...headers } }),
    );
  }

  async status(path: string): Promise<number> {
    return (await this.get(path)).status;
  }

  async text(path: string): Promise<string> {
    return await (await this.get(path)).text();
  }

  /** Sends a form of a page of the signed-in person. */
  async submit(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Response> {
    return await this.post(path, { csrf: await this.csrf(), ...fields }, headers);
  }

  /** The header as the browser sends it. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  /** Takes over the cookies of another browser, as a thief does. */
  set cookie(sent: string) {
    for (const [, name = "", value = ""] of sent.matchAll(/([^=; ]+)=([^;]*)/g)) this.cookies.set(name, value);
  }

  /** The hidden field that every form of a signed-in person has. */
  async csrf(): Promise<string> {
    return present(/name="csrf" value="([^"]+)"/.exec(await this.text("/account"))?.[1], "the form's token");
  }

  private sent(): Record<string, string> {
    return { ...this.headers, ...(this.cookie === "" ? {} : { cookie: this.cookie }) };
  }

  private keep(response: Response): Response {
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }
}

export const PASSWORD = "correct horse battery";

/** A browser that the operator's link has signed in; its account has credit unless `credit` says otherwise. */
export async function signedIn(at: Site, email = "me@example.org", credit = 10n ** 12n): Promise<Browser> {
  const browser = new Browser(at);
  const password = await Bun.password.hash(PASSWORD, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
  await at.store.accounts.accountAdd({ ...funded(`acct_${email}`, email), credit, password });
  await browser.post("/sign-in", { email, password: PASSWORD });
  return browser;
}

/** A service, and a browser that is signed in to it. */
export async function visit(options?: Parameters<typeof stage>[0]): Promise<{ at: Stage; browser: Browser }> {
  const at = await stage(options);
  return { at, browser: await signedIn(at) };
}
