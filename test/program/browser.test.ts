/**
 * A person with a real browser: the first link, the account, a device login of a real `tendon login`, the chart, a revocation.
 * Debian's Chromium, driven by playwright-core. TENDON_TEST_PICTURES=DIR keeps pictures of every page to look at.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chromium } from "playwright-core";
import { testRequirement } from "../../src/config/environment.ts";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { CHROMIUM, look, open } from "./looking.ts";
import { Place, requestOf, type Server } from "./program.ts";
import { footage } from "./robot.ts";

const PASSWORD = "correct horse battery";
const NEXT_PASSWORD = "staple horse correct";

/** The first line of the program's output that matches. */
async function said(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const bytes of stream) {
    text += Buffer.from(bytes).toString();
    const found = pattern.exec(text)?.[0];
    if (found) return found;
  }
  throw new Error(`the program ended without ${pattern}: ${text}`);
}

async function chunk(server: Server, key: string, jpegs: readonly Uint8Array[]): Promise<Response> {
  return await server.post(requestOf(jpegs), { authorization: `Bearer ${key}` });
}

// Without Chromium no person can be played; `.ci/run` installs it.
test.skipIf(CHROMIUM === null && testRequirement() === "none")(
  "first link, account, device login, chart, revoke",
  async () => {
    await using place = await Place.make();
    await using provider = await ScriptedProvider.start();
    const llm = `[llm."llm-a-5.3:superfast"]\nbase_url = "${provider.url}"\nprotocol = "chat"\nmodel = "m"\n`;
    await Bun.write(place.path("tendon.toml"), `[robot."vendorB/molmoact2:yam"]\ndevice = "echo"\n${llm}`);
    const data = place.path("data");
    const server = await place.serve(["--config", place.path("tendon.toml"), "--data", data]);
    const { url } = server.ready;
    const link = String((server.ready as unknown as Record<string, unknown>).operator_link);
    const notes: string[] = [];
    const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ["--no-sandbox"] });
    try {
      const page = await (await open(browser, url, notes)).newPage();

      await page.goto(link);
      await look(page, "welcome");
      // With --dev the link leads to the account that has the credit, and to no other.
      expect(await page.getByLabel("E-mail").inputValue()).toBe("dev@localhost");
      expect(await page.getByLabel("E-mail").isEditable()).toBe(false);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.keyboard.press("Enter");
      await page.waitForURL("**/account");
      expect(await page.locator("h1").textContent()).toContain("Account");
      expect(await page.locator("main").textContent()).toContain("$100.00");

      // A key made on the page is shown whole, once.
      await page.locator('form[action="/account/keys"] input[name="name"]').fill("bench arm");
      await page.locator('form[action="/account/keys"] button').click();
      const key = await page.locator("input[readonly]").first().inputValue();
      expect(key).toMatch(/^tdn_\w{12}_\w{42}$/);
      await look(page, "account-new-key");
      await page.goto("/account");
      expect(await page.content()).not.toContain(key);

      // Another machine signs in: its terminal prints link and code, the person compares and confirms.
      await page.locator('form[action="/sign-out"] button').click();
      const home = place.path("other-home");
      const login = place.spawn(["login", "--base-url", url], { HOME: home });
      const shown = await said(login.stdout, /http\S+\/device\?user_code=\S+/);
      const code = /user_code=(\S+)/.exec(shown)?.[1] ?? "";
      await page.goto(shown);
      await look(page, "sign-in");
      await page.getByLabel("E-mail").fill("dev@localhost");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.keyboard.press("Enter");
      await page.waitForURL("**/device?user_code=*");
      expect(await page.locator('input[name="user_code"]').inputValue()).toBe(code);
      await look(page, "device");
      await page.keyboard.press("Enter").catch(() => {});
      if (!(await page.content()).includes("approve")) await page.locator('form[action="/device"] button').click();
      await page.waitForSelector('button[value="approve"]');
      expect(await page.locator("main").textContent()).toContain(code);
      await look(page, "device-confirm");
      await page.locator('button[value="approve"]').click();
      await look(page, "device-done");
      expect(await login.exited).toBe(0);
      const token = (await place.run(["token"], { HOME: home })).stdout.trim();
      expect(token).toMatch(/^tdn_\w{12}_\w{42}$/);
      expect(token).not.toBe(key);
      expect((await place.run(["status", "--base-url", url], { HOME: home })).code).toBe(0);

      // What it uses stands in the chart.
      const { cameras } = await footage(1);
      for (let run = 0; run < 3; run += 1) expect((await chunk(server, token, cameras.flat())).status).toBe(200);
      const asked = await place.run(["ask", "Hello?", "--base-url", url], { HOME: home });
      expect(asked).toMatchObject({ code: 0, stderr: "" });
      await page.goto("/account");
      expect(await page.locator("svg rect").count()).toBeGreaterThan(0);
      const used = async (kind: string) =>
        await page
          .locator("table", { hasText: `${kind}, last` })
          .locator("tbody td")
          .allTextContents();
      expect((await used("Robot models"))[0]).toBe("Chunks3");
      expect((await used("Language models")).slice(0, 4)).toEqual([
        "Responses1",
        "Tokens in12",
        "Of these cached0",
        "Tokens out8",
      ]);
      await look(page, "account");

      // Revoked on the page, the key ends within a second.
      const row = page.locator("tr", { hasText: token.slice(0, 16) });
      await row.locator("summary").click();
      await row.locator("button").click();
      await page.waitForURL("**/account?done=revoked");
      const deadline = performance.now() + 1_000;
      let status = 0;
      while (status !== 401 && performance.now() < deadline)
        status = (await chunk(server, token, cameras.flat())).status;
      expect(status).toBe(401);
      expect((await place.run(["status", "--base-url", url], { HOME: home })).code).toBe(3);
      expect((await place.run(["logout", "--base-url", url], { HOME: home })).code).toBe(0);
      expect((await place.run(["token"], { HOME: home })).code).toBe(3);
      await look(page, "account-revoked");

      // Ten minutes later a key costs the password once more; a new password asks about the keys.
      using db = new Database(`${data}/tendon.sqlite`);
      db.run("PRAGMA busy_timeout = 5000");
      db.run("UPDATE sign_ins SET proved_at = 0");
      await page.goto("/account");
      await look(page, "account-later");
      const makes = page.locator('form[action="/account/keys"]');
      await makes.locator('input[name="name"]').fill("late arm");
      await makes.getByLabel("Your password").fill(PASSWORD);
      await makes.locator("button").click();
      const late = await page.locator("input[readonly]").first().inputValue();
      expect((await chunk(server, late, cameras.flat())).status).toBe(200);
      const changes = page.locator('form[action="/account/password"]');
      await changes.getByLabel("Current password").fill(PASSWORD);
      await changes.getByLabel("New password").fill(NEXT_PASSWORD);
      await changes.getByLabel("Revoke them all").check();
      await changes.locator("button").click();
      await page.waitForURL("**/account?done=passwordAndKeys");
      expect((await chunk(server, late, cameras.flat())).status).toBe(401);
      await look(page, "account-password");

      // The operator resets it: this browser is out, and the link lets its person in again.
      const reset = ["admin", "account", "reset", "--account", "dev@localhost", "--base-url", url, "--json"];
      await place.run(["admin", "key", "create", "--account", "dev@localhost", "--data", data]);
      const { stdout } = await place.run([...reset, "--data", data]);
      await page.goto("/account");
      expect(new URL(page.url()).pathname).toBe("/sign-in");
      await page.goto(String((JSON.parse(stdout) as { url: string }).url));
      await look(page, "reset");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByLabel("It stays").check();
      await page.keyboard.press("Enter");
      await page.waitForURL("**/account");

      await page.goto("/docs/language-models");
      await look(page, "docs-language-models");
      await page.goto("/docs/robot-runs");
      await look(page, "docs-robot-runs");
      expect(notes).toEqual([]);
    } finally {
      await browser.close();
    }
    expect(await server.stop()).toBe(0);
  },
  120_000,
);
