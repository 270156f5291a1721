/**
 * A run from a folder to a picture: pushed by the command line, played by Chromium from the whole program. What the player
 * shows of each moment is tested in test/runs/pages/runs-player.test.ts.
 */
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { chromium } from "playwright-core";
import { testRequirement } from "../../src/config/environment.ts";
import { PlayerPage } from "../runs/pages/player-page.ts";
import { drawVideo, episode, expectedRow, logOf } from "../runs/views/episode.ts";
import { look } from "./looking.ts";
import { Place } from "./program.ts";

const CHROMIUM = Bun.which("chromium");
const possible = CHROMIUM !== null && Bun.which("ffmpeg") !== null;

// Without Chromium and ffmpeg there is no picture; `.ci/run` installs both.
test.skipIf(!possible && testRequirement() === "none")(
  "a run is pushed, listed, played, downloaded and deleted",
  async () => {
    await using place = await Place.make();
    const server = await place.serve(["--dev"]);
    const { url } = server.ready;
    const of = episode();
    await mkdir(place.path("fold-1/videos"), { recursive: true });
    await drawVideo(place.path("fold-1/videos/top.mp4"), { seconds: 4, fps: 15 });
    await drawVideo(place.path("fold-1/videos/wrist.mp4"), { seconds: 3, fps: 30 });
    await Bun.write(place.path("fold-1/episode.jsonl"), logOf(of));
    expect(await place.run(["runs", "push", "fold-1", "--robot", "arm-1", "--base-url", url])).toMatchObject({
      code: 0,
    });

    const browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ["--no-sandbox"] });
    try {
      const page = await browser.newPage({ baseURL: url });
      const notes: string[] = [];
      page.on("console", (message) => {
        // The service has no icon, which browsers ask every site for.
        if (!message.location().url.endsWith("/favicon.ico")) notes.push(message.text());
      });
      page.on("pageerror", (error) => notes.push(String(error)));
      await page.goto(String((server.ready as unknown as Record<string, unknown>).operator_link));
      await page.getByLabel("Password").fill("correct horse battery");
      await page.keyboard.press("Enter");
      await page.waitForURL("**/account");
      await page.getByRole("link", { name: "Runs" }).click();
      await page.getByRole("link", { name: "fold-1", exact: true }).click();
      await page.waitForSelector("#player[data-ready]");

      const player = new PlayerPage(page);
      for (const t of [2.4, 0.2, 3.7]) {
        await player.scrub(t);
        expect(await player.row()).toEqual(expectedRow(of, t));
        expect((await player.times())[0]).toBeCloseTo(t, 2);
      }
      await look(page, "run-program");
      const fetched = page.waitForEvent("download");
      await page.getByRole("link", { name: "episode.jsonl" }).click();
      expect(await Bun.file(await (await fetched).path()).text()).toBe(logOf(of));

      await page.locator(".revoke summary").click();
      await page.getByRole("button", { name: "Delete for good" }).click();
      await page.waitForURL("**/account/runs?done=deleted");
      expect(await page.locator("main").textContent()).toContain("There are no runs yet.");
      expect(notes).toEqual([]);
    } finally {
      await browser.close();
    }
    expect(await server.stop()).toBe(0);
  },
  120_000,
);
