/** Pages in a real browser: Debian's Chromium, driven by playwright-core. TENDON_TEST_PICTURES=DIR keeps pictures of every page to look at. */
import { expect } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";

/** Without it no person can be played; `.ci/run` installs it. */
export const CHROMIUM = Bun.which("chromium");
const PICTURES = process.env.TENDON_TEST_PICTURES;

/** A browser that trusts nothing outside the page: a request to anywhere else, or a broken policy, is noted. */
export async function open(browser: Browser, base: string, notes: string[]): Promise<BrowserContext> {
  const context = await browser.newContext({ javaScriptEnabled: false, baseURL: base });
  context.on("request", (request) => {
    if (!request.url().startsWith(base)) notes.push(`asked for ${request.url()}`);
  });
  context.on("console", (message) => notes.push(message.text()));
  return context;
}

/** The page at both widths, light and dark; nothing may be wider than the window: a picture of the whole page would be, too. */
export async function look(page: Page, name: string): Promise<void> {
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 900 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const picture = await page.screenshot({ fullPage: true, animations: "disabled" });
      // A PNG's width stands at byte 16.
      expect([name, picture.readUInt32BE(16)]).toEqual([name, width]);
      if (PICTURES !== undefined) await Bun.write(`${PICTURES}/${name}-${width}-${colorScheme}.png`, picture);
    }
  }
}
