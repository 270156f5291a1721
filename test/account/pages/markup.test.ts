import { describe, expect, test } from "bun:test";
import { accountPage } from "../../../src/account/pages/account.ts";
import { deviceConfirmPage, deviceDonePage, deviceEnterPage } from "../../../src/account/pages/device.ts";
import { signInPage, signUpPage, welcomePage } from "../../../src/account/pages/sign-in.ts";
import { messagePage, WEB_POLICY } from "../../../src/web/layout.ts";
import { accountData, HOSTILE, pagesOf } from "./samples.ts";

const PAGES = Object.entries(pagesOf("robin@lab.example"));
const HOSTILE_PAGES = Object.entries(pagesOf(HOSTILE));

interface Tag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/** The page's elements, as a browser's parser sees them. */
async function tagsOf(page: string): Promise<Tag[]> {
  const tags: Tag[] = [];
  const rewriter = new HTMLRewriter().on("*", {
    element(element) {
      tags.push({
        name: element.tagName,
        attributes: new Map([...element.attributes].flatMap(([name, value]) => [[name ?? "", value ?? ""] as const])),
      });
    },
  });
  await rewriter.transform(new Response(page)).text();
  return tags;
}

function of(tags: readonly Tag[], ...names: string[]): Tag[] {
  return tags.filter(({ name }) => names.includes(name));
}

/** `/action: field field` of each form, the hidden ones too. */
function formsOf(page: string): string[] {
  return [...page.matchAll(/<form[^>]*method="post" action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/g)].map(
    ([, action = "", inside = ""]) =>
      `${action}: ${[...inside.matchAll(/<(?:input|button)[^>]*\sname="([^"]*)"/g)].map((match) => match[1]).join(" ")}`,
  );
}

describe("a page", () => {
  test("has the same elements whatever the texts from users are, and none of their control characters", async () => {
    for (const [at, [name, page]] of HOSTILE_PAGES.entries()) {
      const tags = await tagsOf(page);
      const harmless = await tagsOf(PAGES[at]?.[1] ?? "");
      // The places where a long name may be broken depend on the name.
      const names = (all: readonly Tag[]) => all.map((tag) => tag.name).filter((one) => one !== "wbr");
      expect([name, names(tags)]).toEqual([name, names(harmless)]);
      expect(tags.flatMap(({ attributes }) => [...attributes.keys()]).filter((key) => key.startsWith("on"))).toEqual(
        [],
      );
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(page).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    }
    expect(HOSTILE_PAGES.filter(([, page]) => page.includes("&lt;script&gt;")).map(([name]) => name)).toEqual(
      PAGES.map(([name]) => name).filter((name) => !/Approved|Denied/.test(name)),
    );
  });

  test("brings no script, no style but the one whose hash the policy names, and nothing from elsewhere", async () => {
    for (const [, page] of PAGES) {
      const tags = await tagsOf(page);
      expect(of(tags, "script", "link", "img", "iframe", "base")).toEqual([]);
      expect(tags.filter(({ attributes }) => attributes.has("style"))).toEqual([]);
      expect(page).not.toMatch(/https?:|url\(|@import|src=/);
      const addresses = tags.flatMap(({ attributes }) => [attributes.get("href"), attributes.get("action")]);
      expect(addresses.filter((one) => one !== undefined && !/^(\/[a-z]|#)/.test(one))).toEqual([]);

      const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)].map((match) => match[1] ?? "");
      expect(styles).toHaveLength(1);
      const hash = new Bun.CryptoHasher("sha256").update(styles[0] ?? "").digest("base64");
      expect(WEB_POLICY).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
      );
    }
  });

  test("has one heading of the first level, and no level is left out", async () => {
    for (const [name, page] of PAGES) {
      const levels = (await tagsOf(page)).map((tag) => /^h([1-6])$/.exec(tag.name)?.[1]).filter((one) => one);
      expect([name, levels.filter((one) => one === "1").length, levels[0]]).toEqual([name, 1, "1"]);
      const jumps = levels.filter((one, at) => at > 0 && Number(one) > Number(levels[at - 1]) + 1);
      expect([name, jumps]).toEqual([name, []]);
    }
  });

  test("labels every field, and each id that is pointed at is there once", async () => {
    for (const [name, page] of PAGES) {
      const tags = await tagsOf(page);
      const labelled = new Set(of(tags, "label").map(({ attributes }) => attributes.get("for")));
      const bare = of(tags, "input", "select", "textarea").filter(
        ({ attributes }) =>
          attributes.get("type") !== "hidden" && !attributes.has("hidden") && !labelled.has(attributes.get("id")),
      );
      expect([name, bare]).toEqual([name, []]);
      const ids = tags.flatMap(({ attributes }) => attributes.get("id") ?? []);
      expect([name, ids.length]).toEqual([name, new Set(ids).size]);
      const pointed = tags.flatMap(({ attributes }) =>
        ["for", "aria-describedby", "aria-labelledby"].flatMap((key) => attributes.get(key)?.split(" ") ?? []),
      );
      expect([name, pointed.filter((id) => !ids.includes(id))]).toEqual([name, []]);
    }
  });

  test("gives every table a caption and every heading of a table its scope", async () => {
    for (const [, page] of PAGES) {
      const tags = await tagsOf(page);
      expect(of(tags, "caption")).toHaveLength(of(tags, "table").length);
      expect(of(tags, "th").filter(({ attributes }) => !attributes.has("scope"))).toEqual([]);
    }
  });

  test("shows its navigation only to a person who is signed in", () => {
    const viewer = { email: "robin@lab.example", csrf: "csrf-1" };
    const signedIn = deviceDonePage({ viewer, decision: "deny" });
    expect(formsOf(signedIn)).toEqual(["/sign-out: csrf"]);
    expect(signedIn).toContain('<a href="/account"');
    const signedOut = messagePage({ heading: "Not found", text: "Nothing here." });
    expect(formsOf(signedOut)).toEqual([]);
    expect(signedOut).not.toContain("/account");
  });

  test("ties its problem to the fields of its form and begins the title with it", () => {
    const page = signInPage({ email: "", next: "/", problem: "Wrong password.", signUpOpen: false });
    expect(page.match(/aria-describedby="problem"/g)).toHaveLength(2);
    expect(page).toContain("<title>Problem: Sign in");
    const fine = signInPage({ email: "", next: "/", signUpOpen: false });
    expect(fine).not.toContain('aria-describedby="problem"');
    expect(fine).toContain("<title>Sign in");
  });
});

describe("forms", () => {
  test("sign in, sign up and the one-time link send what their routes take", () => {
    const signIn = signInPage({ email: "a@b.example", next: "/device?user_code=X&y", signUpOpen: true });
    expect(formsOf(signIn)).toEqual(["/sign-in: next email password"]);
    expect(signIn).toContain('name="next" value="/device?user_code=X&amp;y"');
    expect(signIn).toMatch(/autocomplete="username"[\s\S]*autocomplete="current-password"/);
    expect(signIn).toContain('href="/sign-up"');
    expect(signInPage({ email: "", next: "/", signUpOpen: false })).not.toContain("/sign-up");

    const signUp = signUpPage({ email: "" });
    expect(formsOf(signUp)).toEqual(["/sign-up: email password"]);
    expect(signUp).toContain('autocomplete="new-password" minlength="12"');

    const welcome = { token: "t0k", email: "a@b.example", keys: 0 };
    const fixed = welcomePage({ ...welcome, operator: false });
    expect(formsOf(fixed)).toEqual(["/welcome: token email password"]);
    expect(fixed).toMatch(/name="email"[^>]* readonly/);
    const asking = welcomePage({ ...welcome, keys: 2, operator: false });
    expect(formsOf(asking)).toEqual(["/welcome: token email password keys keys"]);
    expect(asking).toContain("The account has 2 keys. What becomes of them?");
    expect(asking).not.toContain("checked");
    const operator = welcomePage({ ...welcome, operator: true });
    expect(operator).not.toMatch(/name="email"[^>]* readonly/);
    expect(operator).toMatch(/<h1>[^<]*operator’s account of this service/);
  });

  test("the device's pages send its code, and the decision with the button that was pressed", () => {
    const viewer = { email: "a@b.example", csrf: "csrf-1" };
    const enter = deviceEnterPage({ viewer, userCode: "WDJB-MJHT" });
    expect(formsOf(enter)).toContain("/device: csrf user_code");
    const pattern = /pattern="([^"]*)"/.exec(enter)?.[1] ?? "";
    const typed = ["WDJB-MJHT", "wdjb mjht", " WDJBMJHT ", "WDJB-MJH", "WDJB-MJHTX"];
    expect(typed.map((one) => new RegExp(`^(?:${pattern})$`, "v").test(one))).toEqual([true, true, true, false, false]);

    const confirm = deviceConfirmPage({
      viewer,
      userCode: "WDJB-MJHT",
      deviceName: "lab-laptop",
      address: "203.0.113.7",
      askedSecondsAgo: 200,
      asked: undefined,
    });
    expect(formsOf(confirm)).toContain("/device/decide: csrf user_code decision decision");
    expect(confirm).toMatch(/name="decision" value="approve"[\s\S]*name="decision" value="deny"/);
    for (const word of ["lab-laptop", "tendon-cli", "203.0.113.7", "3 minutes ago", "<code>WDJB-MJHT</code>"])
      expect(confirm).toContain(word);
  });

  test("the account's page has a form for the limit, for a key, for each live key and for the password", () => {
    const page = accountPage(accountData("arm"));
    expect(formsOf(page)).toEqual([
      "/sign-out: csrf",
      "/account/limit: csrf usd",
      "/account/keys/revoke: csrf prefix",
      "/account/keys: csrf name",
      "/account/password: csrf current password keys keys",
      "/account/identities: csrf identity",
    ]);
    const later = formsOf(accountPage({ ...accountData("arm"), provider: "Lab", asked: { password: true } }));
    expect(later).toContain("/account/keys: csrf name confirm");
    expect(later).toContain("/account/identities: csrf confirm identity");
    expect(formsOf(accountPage({ ...accountData("arm"), keys: [] }))).toContain(
      "/account/password: csrf current password",
    );
    expect(page).toContain('name="prefix" value="tdn_AAAA"');
    expect(page).toContain('revoked <time datetime="2026-11-21T04:03:47Z">2026-11-21 04:03</time>');
  });

  test("without credit and payment method the account's page says why no key can be created", () => {
    const account = { ...accountData("arm").account, credits: 0n, settled: 0n, held: 0n };
    const poor = accountPage({ ...accountData("arm"), account });
    expect(formsOf(poor).filter((form) => form.startsWith("/account/keys:"))).toEqual([]);
    expect(poor).toContain("needs a payment method or credit before a key can be created");
    const payer = accountPage({ ...accountData("arm"), account: { ...account, paymentMethod: true } });
    expect(formsOf(payer)).toContain("/account/keys: csrf name");
  });

  test("a new key is shown whole in a field to copy from, and only when it is new", () => {
    const page = accountPage({ ...accountData("arm"), newKey: { key: "tdn_CCCC_secret", name: "arm" } });
    expect(page).toMatch(/<input[^>]* readonly value="tdn_CCCC_secret"/);
    expect(page).toContain("not shown again");
    expect(accountPage(accountData("arm"))).not.toContain("not shown again");
  });
});
