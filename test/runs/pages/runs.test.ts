/** The pages of runs: who sees what, forms, headers of the player and of files. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { PLAYER_ADDRESS } from "../../../src/runs/views/player-script.ts";
import { signedIn } from "../../account/pages/browser.ts";
import { episode, logOf } from "../views/episode.ts";
import { type RunsStage, runsStage } from "./runs-stage.ts";

const ME = "acct_me@example.org";
const ADDRESS = "/account/runs/arm-1/r.1";

/** A run of `accountId`; its files are a log, a picture, and a document that would like to be a page. */
async function withRun(at: RunsStage, accountId = ME, run = "r.1", completedAt = 1_700_000_000): Promise<void> {
  const folder = await at.folder();
  await Bun.write(join(folder, "episode.jsonl"), logOf(episode()));
  await Bun.write(join(folder, "videos/top.mp4"), "0123456789");
  await Bun.write(join(folder, "a b/<i>#?.html"), "<script>alert(1)</script>");
  at.runs.add({ accountId, robot: "arm-1", run }, folder, completedAt);
}

test("without a sign-in every page, file and form of runs leads to the sign-in, and back to the page", async () => {
  await using at = await runsStage();
  await withRun(at);
  const asked = ["/account/runs?robot=arm-1", ADDRESS, `${ADDRESS}/manifest.json`, `${ADDRESS}/files/episode.jsonl`];
  const ends = await Promise.all(asked.map((path) => at.send(path)));
  const to = (path: string) => `/sign-in?next=${encodeURIComponent(path)}`;
  expect(ends.map(({ status, headers }) => [status, headers.get("location")])).toEqual([
    [303, to("/account/runs?robot=arm-1")],
    [303, to(ADDRESS)],
    [303, to(ADDRESS)],
    [303, to(ADDRESS)],
  ]);
  const form = {
    method: "POST",
    body: "robot=arm-1&run=r.1",
    headers: { "content-type": "application/x-www-form-urlencoded" },
  };
  expect((await at.send("/account/runs/delete", form)).status).toBe(303);
  expect(at.runs.runs).toHaveLength(1);
});

test("another account's run, and one that is not there, are the same page that is not found", async () => {
  await using at = await runsStage();
  await withRun(at, "acct_other");
  const browser = await signedIn(at);
  const pages = [];
  for (const path of [ADDRESS, "/account/runs/arm-1/none", `${ADDRESS}/manifest.json`]) {
    const response = await browser.get(path);
    pages.push([response.status, await response.text()]);
  }
  expect(new Set(pages.map(String)).size).toBe(1);
  expect(pages[0]?.[0]).toBe(404);
  expect((await browser.get(`${ADDRESS}/files/episode.jsonl`)).status).toBe(404);
  const gone = await browser.post("/account/runs/delete", { csrf: await browser.csrf(), robot: "arm-1", run: "r.1" });
  expect([gone.status, at.runs.runs.length]).toEqual([404, 1]);
  expect(await (await browser.get("/account/runs")).text()).not.toContain("r.1");
});

test("runs are listed newest first, by robot, fifty a page, with the storage against the quota", async () => {
  await using at = await runsStage();
  const folder = await at.folder();
  await Bun.write(join(folder, "a.bin"), new Uint8Array(1536));
  for (let run = 0; run < 51; run += 1)
    at.runs.add({ accountId: ME, robot: `arm-${run % 2}`, run: `run-${run}` }, folder, 1_700_000_000 + run);
  const browser = await signedIn(at);
  const shown = async (query: string) => {
    const page = await (await browser.get(`/account/runs${query}`)).text();
    return { page, runs: [...page.matchAll(/<bdi>run-(\d+)<\/bdi>/g)].map(([, run]) => Number(run)) };
  };
  const first = await shown("");
  expect([first.runs.length, first.runs[0], first.runs[49]]).toEqual([50, 50, 1]);
  expect(first.page).toContain('<a href="/account/runs?after=50">Older runs</a>');
  expect(first.page).toContain("76.5 KiB</span> of 100 GiB");
  expect(first.page).toContain("3 MiB more are reserved");
  const second = await shown("?after=50");
  expect(second.runs).toEqual([0]);
  expect(second.page).toContain('<a href="/account/runs">Newest runs</a>');
  expect((await shown("?robot=arm-1")).runs.every((run) => run % 2 === 1)).toBe(true);
  const wrong = await browser.get("/account/runs?robot=%22%3E%3Cscript%3E");
  expect([wrong.status, (await wrong.text()).includes("<script>")]).toEqual([422, false]);
});

test("a run is deleted by its form alone: with the token, and from our own page", async () => {
  await using at = await runsStage();
  await withRun(at);
  const browser = await signedIn(at);
  const form = { csrf: await browser.csrf(), robot: "arm-1", run: "r.1" };
  const statuses = [
    (await browser.post("/account/runs/delete", { ...form, csrf: "" })).status,
    (await browser.post("/account/runs/delete", form, { "sec-fetch-site": "cross-site" })).status,
  ];
  expect([statuses, at.runs.runs.length]).toEqual([[403, 403], 1]);
  const done = await browser.post("/account/runs/delete", form);
  expect([done.status, done.headers.get("location"), at.runs.runs.length]).toEqual([
    303,
    "/account/runs?done=deleted",
    0,
  ]);
  expect(await (await browser.get("/account/runs?done=deleted")).text()).toContain("The run is deleted.");
});

test("the player's page alone may run a script, and only from this service", async () => {
  await using at = await runsStage();
  await withRun(at);
  const browser = await signedIn(at);
  const policyOf = async (path: string) => (await browser.get(path)).headers.get("content-security-policy") ?? "";
  const policy = (await policyOf(ADDRESS)).split("; ");
  const plain = (await policyOf("/account/runs")).split("; ");
  expect(plain.filter((one) => /script|img|media|connect/.test(one))).toEqual([]);
  expect(policy.toSorted()).toEqual(
    [...plain, "script-src 'self'", "img-src 'self'", "media-src 'self'", "connect-src 'self'"].toSorted(),
  );
  expect(plain).toContain("default-src 'none'");
  expect(plain).toContain("frame-ancestors 'none'");
  const page = await (await browser.get(ADDRESS)).text();
  expect([...page.matchAll(/<script[^>]*>/g)].map(([tag]) => tag)).toEqual([
    `<script type="module" src="${PLAYER_ADDRESS}">`,
  ]);
  expect(page).not.toMatch(/\sstyle=|\son\w+=/);
});

test("the script's address changes with it, so browsers keep it for ever", async () => {
  await using at = await runsStage();
  const response = await at.send(PLAYER_ADDRESS);
  const text = await response.text();
  expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(PLAYER_ADDRESS).toContain(new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16));
  // No library of over 100 kB: the whole player is far below.
  expect(text.length).toBeLessThan(50_000);
  expect((await at.send("/assets/run-player-0000000000000000.js")).status).toBe(404);
});

test("a range of a file passes through, and what a stranger uploaded is no page", async () => {
  await using at = await runsStage();
  await withRun(at);
  const browser = await signedIn(at);
  const headers = { cookie: browser.cookie, range: "bytes=2-4" };
  const part = await at.send(`${ADDRESS}/files/videos/top.mp4`, { headers });
  expect([part.status, await part.text()]).toEqual([206, "234"]);
  expect(part.headers.get("content-range")).toBe("bytes 2-4/10");
  const document = await browser.get(`${ADDRESS}/files/a%20b/%3Ci%3E%23%3F.html`);
  expect(document.status).toBe(200);
  const told = (response: Response) =>
    ["x-content-type-options", "content-security-policy", "content-disposition"].map((name) =>
      response.headers.get(name),
    );
  expect(told(document)).toEqual(["nosniff", "sandbox; default-src 'none'", "attachment"]);
  expect(told(part)).toEqual(["nosniff", "sandbox; default-src 'none'", "inline"]);
  expect((await browser.get(`${ADDRESS}/files/none`)).status).toBe(404);
});

test("the manifest is the one of the API, and links of the page lead to every file", async () => {
  await using at = await runsStage();
  await withRun(at);
  const browser = await signedIn(at);
  const manifest = (await (await browser.get(`${ADDRESS}/manifest.json`)).json()) as { files: { path: string }[] };
  expect(manifest).toMatchObject({ object: "robot.run", robot: "arm-1", run: "r.1" });
  const page = await (await browser.get(ADDRESS)).text();
  const links = [...page.matchAll(/href="([^"]*)" download/g)].map(([, link]) => link ?? "");
  expect(links).toHaveLength(manifest.files.length);
  for (const link of links) expect((await browser.get(link)).status).toBe(200);
});

test("with the storage down the pages say so, and when to come back", async () => {
  await using at = await runsStage();
  await withRun(at);
  const browser = await signedIn(at);
  at.runs.down = true;
  const ends = [await browser.get("/account/runs"), await browser.get(ADDRESS)];
  expect(ends.map(({ status, headers }) => [status, headers.get("retry-after")])).toEqual([
    [503, "5"],
    [503, "5"],
  ]);
});
