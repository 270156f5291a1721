/** A person with a real browser signs in with a real OpenID provider, makes a key and signs out. */
import { expect, test } from "bun:test";
import { chromium } from "playwright-core";
import { testRequirement } from "../../src/config/environment.ts";
import { CLIENT, startIssuer } from "../account/issuer.ts";
import { CHROMIUM, look, open } from "./looking.ts";
import { Place } from "./program.ts";

test.skipIf(CHROMIUM === null && testRequirement() === "none")(
  "sign-in with a provider, a key, sign-out",
  async () => {
    await using place = await Place.make();
    let back = "";
    await using issuer = await startIssuer(() => [back]);
    issuer.people.set("ann", { email: "ann@example.org", email_verified: true });
    await Bun.write(
      place.path("tendon.toml"),
      `signup = "open"
[oidc]
issuer = "${issuer.url}"
client_id = "${CLIENT.id}"
client_secret_env = "OIDC_SECRET"
name = "Lab Login"
[robot."vendorB/molmoact2:yam"]
device = "echo"
`,
    );
    const server = await place.serve(["--config", place.path("tendon.toml")], { OIDC_SECRET: CLIENT.secret });
    const { url } = server.ready;
    back = `${url}/sign-in/oidc/back`;
    const notes: string[] = [];
    const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ["--no-sandbox"] });
    try {
      const page = await (await open(browser, url, notes)).newPage();
      await page.goto(`${url}/sign-in?next=%2Faccount`);
      await look(page, "sign-in-provider");
      expect(notes).toEqual([]);
      await page.getByRole("link", { name: "Sign in with Lab Login" }).click();

      // The provider's own pages: who one is, and that tendon may know it.
      await page.waitForURL(`${issuer.url}/**`);
      await page.locator('input[name="login"]').fill("ann");
      await page.locator('input[name="password"]').fill("anything");
      await page.locator('button[type="submit"]').click();
      await page.locator('button[type="submit"]').click();

      await page.waitForURL("**/account");
      // What the provider's pages load is none of ours.
      notes.length = 0;
      expect(await page.locator("body").textContent()).toContain("ann@example.org");
      await look(page, "account-provider");
      // The form leads to the provider although the policy lets forms lead to this service alone. The provider knows the browser.
      await page.getByRole("button", { name: "Connect with Lab Login" }).click();
      await page.waitForURL("**/account?done=connected");
      await page.getByRole("button", { name: "Disconnect ann@example.org" }).click();
      expect(await page.locator("#problem").textContent()).toContain("no other way to sign in");
      await look(page, "identities");
      notes.length = 0;
      await page.goto(`${url}/account`);
      const credit = await place.run(["admin", "credit", "--account", "ann@example.org", "--usd", "5", "--unverified"]);
      expect(credit).toMatchObject({ code: 0 });
      await page.reload();
      await page.locator('form[action="/account/keys"] input[name="name"]').fill("arm");
      await page.locator('form[action="/account/keys"] button').click();
      const key = await page.locator("input[readonly]").first().inputValue();
      const models = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      expect(models.status).toBe(200);

      await page.locator('form[action="/sign-out"] button').click();
      await page.goto(`${url}/account`);
      expect(new URL(page.url()).pathname).toBe("/sign-in");
      expect(notes).toEqual([]);
    } finally {
      await browser.close();
    }
  },
  60_000,
);
