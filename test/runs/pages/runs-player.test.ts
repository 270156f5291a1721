/**
 * A person plays a run in a real browser: Debian's Chromium, driven by playwright-core, over real storage. The shown frames are compared
 * with ffmpeg's extraction of them, and the rows with the log. TENDON_TEST_PICTURES=DIR keeps pictures.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { testRequirement } from "../../../src/config/environment.ts";
import { look } from "../../program/looking.ts";
import { temporaryFolder } from "../../store/temporary.ts";
import { RunsStage } from "../stage.ts";
import { drawFrames, drawVideo, type Episode, episode, expectedRow, frameOf, logOf } from "../views/episode.ts";
import { distance, FAR, NEAR, PlayerPage } from "./player-page.ts";

const CHROMIUM = Bun.which("chromium");
const FIXTURES = join(import.meta.dir, "../../../../shared/fixtures");
const RUN = "arm-1/fold-the-towel.2026-11-22";
const ADDRESS = `/account/runs/${RUN}`;

/** A run whose page is open in Chromium. */
interface Watched extends AsyncDisposable {
  readonly page: PlayerPage;
  /** The path in the run and the range of each request for a file. */
  readonly asked: { readonly path: string; readonly range: string | undefined }[];
  /** Requests to other sites, errors of the script, violations of the policy. */
  readonly notes: string[];
}

// Without Chromium and ffmpeg no person can be played; `.ci/run` installs both.
const possible = CHROMIUM !== null && Bun.which("ffmpeg") !== null;

describe.skipIf(!possible && testRequirement() === "none")("the player", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ["--no-sandbox"] });
  });
  afterAll(() => browser.close());

  async function watch(fill: (folder: string) => Promise<void>): Promise<Watched> {
    const at = await RunsStage.start();
    const { me, browser: signedIn } = await at.owner();
    const folder = await temporaryFolder();
    await fill(folder.path);
    const entries = await readdir(folder.path, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const files = paths.map(
      async (path) => [path.slice(folder.path.length + 1), await Bun.file(path).bytes()] as const,
    );
    await me.completed(RUN, Object.fromEntries(await Promise.all(files)));
    const context = await browser.newContext({ baseURL: at.url, viewport: { width: 1280, height: 900 } });
    const cookies = signedIn.cookie.split("; ").map((one) => one.split("=") as [string, string]);
    await context.addCookies(cookies.map(([name, value]) => ({ name, value, url: at.url })));
    const asked: Watched["asked"] = [];
    const notes: string[] = [];
    const page = await context.newPage();
    page.on("request", (request) => {
      const [site, path] = request.url().split(`${ADDRESS}/files/`);
      if (path !== undefined) asked.push({ path, range: request.headers().range });
      if (!site?.startsWith(at.url) && !site?.startsWith("data:")) notes.push(request.url());
    });
    page.on("console", (message) => {
      // Browsers ask every site for an icon, and the service has none.
      const { url } = message.location();
      if (!url.endsWith("/favicon.ico")) notes.push(`${message.text()} ${url}`);
    });
    page.on("pageerror", (error) => notes.push(String(error)));
    await page.goto(ADDRESS);
    await page.waitForSelector("#player[data-ready]");
    const close = async () => {
      await context.close();
      await folder[Symbol.asyncDispose]();
      await at[Symbol.asyncDispose]();
    };
    return { page: new PlayerPage(page), asked, notes, [Symbol.asyncDispose]: close };
  }

  /** A run of drawn videos of different length and pace. */
  async function drawn(folder: string, of: Episode): Promise<void> {
    await mkdir(join(folder, "videos"));
    await drawVideo(join(folder, "videos/top.mp4"), { seconds: 4, fps: 15 });
    await drawVideo(join(folder, "videos/wrist.mp4"), { seconds: 3, fps: 30 });
    await Bun.write(join(folder, "episode.jsonl"), logOf(of));
  }

  test("scrubbing shows every camera's frame of that moment, and the log's row", async () => {
    const of = episode();
    let folder = "";
    await using watched = await watch(async (path) => {
      folder = path;
      await drawn(path, of);
    });
    const { page, notes } = watched;
    for (const t of [2.4, 0, 1.0, 3.9]) {
      await page.scrub(t);
      const shown = await page.picture(0);
      const frame = Math.floor(t * 15 + 1e-6);
      const away = async (index: number) => distance(shown, await frameOf(join(folder, "videos/top.mp4"), index));
      const off = await away(frame);
      expect(off).toBeLessThan(NEAR);
      expect(await away((frame + 30) % 60)).toBeGreaterThan(FAR);
      // Its neighbour is another picture, though much alike.
      expect(await away(frame === 0 ? 1 : frame - 1)).toBeGreaterThan(2 * off);
      // The shorter video keeps its last frame.
      const wrist = Math.min(Math.floor(t * 30 + 1e-6), 89);
      expect(distance(await page.picture(1), await frameOf(join(folder, "videos/wrist.mp4"), wrist))).toBeLessThan(
        NEAR,
      );
      expect(await page.row()).toEqual(expectedRow(of, t));
    }
    expect(notes).toEqual([]);
  }, 60_000);

  test("keys alone move by a frame, by a second and to the ends, play and pause", async () => {
    await using watched = await watch((folder) => drawn(folder, episode()));
    const { page, notes } = watched;
    const moves = [
      ["ArrowRight", 1 / 15],
      ["ArrowRight", 2 / 15],
      ["Shift+ArrowRight", 1 + 2 / 15],
      ["ArrowLeft", 1 + 1 / 15],
      ["End", 4],
      ["Shift+ArrowLeft", 3],
      ["Home", 0],
    ] as const;
    for (const [key, t] of moves) {
      await page.page.keyboard.press(key);
      await page.arrived(t);
      for (const time of await page.times()) expect(Math.abs(time - Math.min(t, time < t ? 3 : t))).toBeLessThan(0.01);
    }
    await page.page.keyboard.press("Space");
    expect(await page.page.locator("#play").textContent()).toBe("Pause");
    await page.until("document.querySelector('#scrubber').value > 0.7");
    await page.page.keyboard.press("Space");
    await page.settled();
    const times = await page.times();
    const t = await page.time();
    expect(t).toBeGreaterThan(0.7);
    for (const time of times) expect(Math.abs(time - t)).toBeLessThan(0.01);
    expect(await page.page.getByRole("slider", { name: "Time in the run" }).getAttribute("aria-valuetext")).toMatch(
      /^0:0\d\.\d{3} of 0:04\.\d{3}$/,
    );
    expect(notes).toEqual([]);
  }, 60_000);

  test("a camera without a video shows its frames, one observation a step", async () => {
    const of = episode({ cameras: { top: undefined } });
    let folder = "";
    await using watched = await watch(async (path) => {
      folder = path;
      await drawFrames(join(path, "frames/top"), of.observations);
      await Bun.write(join(path, "episode.jsonl"), logOf(of));
    });
    const { page, notes } = watched;
    await page.scrub(1.2);
    expect(await page.page.locator(".camera img").getAttribute("src")).toBe(`${ADDRESS}/files/frames/top/000002.jpg`);
    const shown = await page.picture(0, "img");
    expect(distance(shown, await frameOf(join(folder, "frames/top/000002.jpg"), 0))).toBeLessThan(NEAR);
    await page.page.keyboard.press("ArrowRight");
    await page.arrived(1.5);
    await page.page.waitForSelector('.camera img[src$="000003.jpg"]');
    // The neighbours of a frame are loaded ahead.
    const asked = watched.asked.map(({ path }) => path);
    for (const step of [1, 2, 3, 4]) expect(asked).toContain(`frames/top/00000${step}.jpg`);
    expect(notes).toEqual([]);
  }, 60_000);

  test("a small part of the log of an hour is read to find the row of any moment", async () => {
    const of = episode({ observations: 7200, rows: 20, cameras: { top: "videos/top.mp4" }, joints: JOINTS });
    const log = logOf(of);
    expect(log.length).toBeGreaterThan(30 * 2 ** 20);
    await using watched = await watch(async (folder) => {
      await mkdir(join(folder, "videos"));
      await drawVideo(join(folder, "videos/top.mp4"), { seconds: 4, fps: 15 });
      await Bun.write(join(folder, "episode.jsonl"), log);
    });
    const { page, notes, asked } = watched;
    await page.until("document.querySelector('#joints .trace-state').getAttribute('d')?.length > 100");
    for (const t of [3599.4, 1800.2, 7.7]) {
      await page.scrub(t);
      expect(await page.row()).toEqual(expectedRow(of, t));
    }
    await page.until("/from 2\\d\\d /.test(document.querySelector('#sampled').textContent)");
    const ranges = asked.filter(({ path }) => path === "episode.jsonl").map(({ range }) => range ?? "none");
    const sizes = ranges.map((range) => {
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
      return Number(to) + 1 - Number(from);
    });
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(log.length / 3);
    await page.page.locator("#window").selectOption("10");
    await page.page.waitForSelector("#sampled", { state: "hidden" });
    expect(notes).toEqual([]);
  }, 60_000);

  test.each([
    ["no log", undefined, "The run has no episode.jsonl"],
    ["a log of something else", "hello\n", "The log cannot be read: its first line is not the head of an episode."],
    ["an empty log", "", "The log cannot be read: it has no whole line."],
  ] as const)(
    "with %s the videos still play, and the page says what is wrong",
    async (_, log, words) => {
      await using watched = await watch(async (folder) => {
        await mkdir(join(folder, "videos"));
        await drawVideo(join(folder, "videos/top.mp4"), { seconds: 4, fps: 15 });
        if (log !== undefined) await Bun.write(join(folder, "episode.jsonl"), log);
      });
      const { page } = watched;
      expect(await page.page.locator("#log-problem").textContent()).toContain(words);
      await page.until("document.querySelector('#scrubber').max > 3");
      await page.scrub(2);
      expect((await page.times())[0]).toBeCloseTo(2, 2);
      expect(await page.page.locator("#trace-section").isVisible()).toBe(false);
      expect(await page.page.locator(".files tbody tr").count()).toBe(log === undefined ? 1 : 2);
    },
    60_000,
  );

  test("a real run of three cameras plays in step", async () => {
    const names = ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"];
    const shared = await readdir(FIXTURES).catch((): string[] => []);
    const real = names.every((name) => shared.includes(`${name}.mp4`));
    const cameras = Object.fromEntries(names.map((name) => [name, `videos/${name}.mp4`]));
    const of = episode({ observations: 56, rows: 24, cameras, joints: JOINTS });
    await using watched = await watch(async (folder) => {
      await mkdir(join(folder, "videos"));
      for (const name of names) {
        const file = join(folder, `videos/${name}.mp4`);
        if (real) await Bun.write(file, Bun.file(join(FIXTURES, `${name}.mp4`)));
        else await drawVideo(file, { seconds: 28, fps: 15 });
      }
      await Bun.write(join(folder, "episode.jsonl"), logOf(of));
    });
    const { page, notes } = watched;
    await page.scrub(12.4);
    await look(page.page, "run");
    await page.page.locator("#play").click();
    await page.until("document.querySelector('#scrubber').value > 14");
    const times = await page.times();
    // A video that drifts further is set to the time of the others.
    expect(Math.max(...times) - Math.min(...times)).toBeLessThan(0.5);
    await page.page.keyboard.press("Space");
    await page.page.locator("#scrubber").focus();
    await page.page.keyboard.press("ArrowRight");
    await page.settled();
    const [first = 0, ...others] = await page.times();
    for (const other of others) expect(other).toBe(first);
    await page.page.goto("/account/runs");
    await look(page.page, "runs");
    expect(notes).toEqual([]);
  }, 60_000);
});

const JOINTS = ["left", "right"].flatMap((side) =>
  ["waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"].map(
    (joint) => `${side}_${joint}`,
  ),
);
