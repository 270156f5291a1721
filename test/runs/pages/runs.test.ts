/** The pages of runs over real storage: who sees what, forms, headers of the player and of files. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { sizeText } from "../../../src/runs/views/address.ts";
import { PLAYER_ADDRESS } from "../../../src/runs/views/run.ts";
import { Browser, PASSWORD } from "../../account/pages/browser.ts";
import type { Person } from "../person.ts";
import { RunsStage } from "../stage.ts";
import { episode, logOf } from "../views/episode.ts";

const ADDRESS = "/account/runs/arm-1/r.1";
const OWNER = "me@example.org";

/** A run whose files are a log, a video, and a document that would like to be a page. */
const FILES = {
  "a b/<i>#?.html": "<script>alert(1)</script>",
  "episode.jsonl": logOf(episode()),
  "videos/top.mp4": "0123456789",
};

/** A stage with this run, whose owner is signed in. */
async function withRun() {
  const at = await RunsStage.start();
  const owner = await at.owner();
  await owner.me.completed("arm-1/r.1", FILES);
  return { at, ...owner, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
}

const runsOf = async (person: Person) => (await person.list()).json.data.map(({ run }) => run);

test("without a sign-in every page, file and form of runs leads to the sign-in, and back to the page", async () => {
  await using given = await withRun();
  const { at, me } = given;
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
  expect(await runsOf(me)).toEqual(["r.1"]);
});

test("after the sign-in the browser is back at the page of the run, or at the list as it was asked for", async () => {
  await using at = await RunsStage.start();
  await at.owner();
  for (const path of [ADDRESS, "/account/runs", "/account/runs?robot=arm-1&after=x_-1"]) {
    const form = { email: OWNER, password: PASSWORD, next: path };
    const back = await new Browser(at).post("/sign-in", form);
    expect([back.status, back.headers.get("location")]).toEqual([303, path]);
  }
  for (const next of [
    "/account/runs/../..//x",
    "/account/runs//x",
    "/account/runs/a/b/c",
    "/account/runs/a/..",
    "/account/runs/a",
  ]) {
    const back = await new Browser(at).post("/sign-in", { email: OWNER, password: PASSWORD, next });
    expect([next, back.headers.get("location")]).toEqual([next, "/account"]);
  }
});

test("HEAD of a file on a page has its length, and no body", async () => {
  await using given = await withRun();
  const { at, browser } = given;
  const { cookie } = browser;
  const head = async (path: string, headers: Record<string, string> = { cookie }) =>
    await at.send(`${ADDRESS}/files/${path}`, { method: "HEAD", headers, redirect: "manual" });
  for (const [path, text] of Object.entries(FILES)) {
    const answer = await head(path.split("/").map(encodeURIComponent).join("/"));
    expect([path, answer.status, answer.headers.get("content-length")]).toEqual([path, 200, `${text.length}`]);
    expect(answer.headers.get("content-security-policy")).toBe("sandbox; default-src 'none'");
    expect((await answer.bytes()).length).toBe(0);
  }
  expect([(await head("none")).status, (await head("videos/top.mp4", {})).status]).toEqual([404, 303]);
  const usage = await given.me.usage();
  expect(usage.json.month.downloaded_bytes).toBe(0);
});

test("HEAD of a file on a page needs no place of the run's downloads", async () => {
  await using given = await withRun();
  const { at, browser } = given;
  const { downloads } = at.service.runs;
  const [account] = await at.rows("SELECT account_id FROM robot_runs");
  const key = { accountId: String(account?.account_id), robot: "arm-1", run: "r.1" };
  const taken = Array.from({ length: LIMITS.runDownloads.runMax }, () => downloads.take(key));
  const asked = ["GET", "HEAD"].map((method) =>
    at.send(`${ADDRESS}/files/videos/top.mp4`, { method, headers: { cookie: browser.cookie } }),
  );
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  for (const leave of taken) if (typeof leave === "function") leave();
  expect(statuses).toEqual([503, 200]);
});

test("another account's run, one that is not there and one that cannot be are the same page that is not found", async () => {
  await using at = await RunsStage.start();
  const { browser } = await at.owner();
  const other = await at.person();
  await other.completed("arm-1/r.1", FILES);
  const pages = [];
  const impossible = [`/account/runs/arm-1/${"a".repeat(129)}`, "/account/runs/a%20b/r.1", "/account/runs/arm-1/a%00"];
  for (const path of [ADDRESS, "/account/runs/arm-1/none", `${ADDRESS}/manifest.json`, ...impossible]) {
    const response = await browser.get(path);
    pages.push([response.status, await response.text()]);
  }
  expect(new Set(pages.map(String)).size).toBe(1);
  expect(pages[0]?.[0]).toBe(404);
  for (const path of [ADDRESS, ...impossible])
    expect([path, (await browser.get(`${path}/files/episode.jsonl`)).status]).toEqual([path, 404]);
  const csrf = await browser.csrf();
  for (const run of ["r.1", "a b"]) {
    const gone = await browser.post("/account/runs/delete", { csrf, robot: "arm-1", run });
    expect([gone.status, await runsOf(other)]).toEqual([404, ["r.1"]]);
  }
  expect(await (await browser.get("/account/runs")).text()).not.toContain("r.1");
});

test("runs are listed newest first, by robot, fifty a page, with the storage against the quota", async () => {
  await using at = await RunsStage.start();
  const { me, browser } = await at.owner();
  for (let run = 0; run < 51; run += 1)
    await me.completed(`arm-${run % 2}/run-${run}`, { "a.bin": new Uint8Array(1536) });
  await me.begun("arm-1/open", "a", { size: 3 * 2 ** 20 });
  const shown = async (query: string) => {
    const page = await (await browser.get(`/account/runs${query}`)).text();
    return { page, runs: [...page.matchAll(/<bdi>run-(\d+)<\/bdi>/g)].map(([, run]) => Number(run)) };
  };
  const first = await shown("");
  expect([first.runs.length, first.runs[0], first.runs[49]]).toEqual([50, 50, 1]);
  const [, older = ""] = /<a href="\/account\/runs(\?after=[\w-]+)">Older runs<\/a>/.exec(first.page) ?? [];
  const stored = (await me.usage()).json.stored_bytes;
  expect((await me.room())[0]).toBe(51 * 1536);
  expect(first.page).toContain(`${sizeText(stored)}</span> of 100 GiB`);
  expect(first.page).toContain("3 MiB more are reserved");
  const second = await shown(older);
  expect(second.runs).toEqual([0]);
  expect(second.page).toContain('<a href="/account/runs">Newest runs</a>');
  expect((await shown("?robot=arm-1")).runs.every((run) => run % 2 === 1)).toBe(true);
  const impossible = await shown("?robot=%22%3E%3Cscript%3E");
  expect([impossible.runs, impossible.page.includes("<script>")]).toEqual([[], false]);
  expect((await browser.get("/account/runs?after=x")).status).toBe(422);
});

test("a run is deleted by its form alone: with the token, and from our own page", async () => {
  await using given = await withRun();
  const { me, browser } = given;
  const form = { csrf: await browser.csrf(), robot: "arm-1", run: "r.1" };
  const statuses = [
    (await browser.post("/account/runs/delete", { ...form, csrf: "" })).status,
    (await browser.post("/account/runs/delete", form, { "sec-fetch-site": "cross-site" })).status,
  ];
  expect([statuses, await runsOf(me)]).toEqual([[403, 403], ["r.1"]]);
  const done = await browser.post("/account/runs/delete", form);
  expect([done.status, done.headers.get("location")]).toEqual([303, "/account/runs?done=deleted"]);
  expect(await runsOf(me)).toEqual([]);
  expect(await (await browser.get("/account/runs?done=deleted")).text()).toContain("The run is deleted.");
});

test("the player's page runs this service's player alone, by a nonce: a script among the files of a run is none", async () => {
  await using given = await withRun();
  const { browser } = given;
  const policyOf = async (path: string) => (await browser.get(path)).headers.get("content-security-policy") ?? "";
  const plain = (await policyOf("/account/runs")).split("; ");
  expect(plain.filter((one) => /script|img|media|connect/.test(one))).toEqual([]);
  expect(plain).toContain("default-src 'none'");
  expect(plain).toContain("frame-ancestors 'none'");
  const nonces = new Set<string>();
  for (let visits = 0; visits < 2; visits += 1) {
    const response = await browser.get(ADDRESS);
    const policy = (response.headers.get("content-security-policy") ?? "").split("; ");
    const [, nonce = ""] = /script-src 'nonce-(\w{22})'/.exec(policy.join()) ?? [];
    nonces.add(nonce);
    const kinds = ["img-src 'self'", "media-src 'self'", "connect-src 'self'"];
    expect(policy.toSorted()).toEqual([...plain, `script-src 'nonce-${nonce}'`, ...kinds].toSorted());
    const page = await response.text();
    expect([...page.matchAll(/<script[^>]*>/g)].map(([tag]) => tag)).toEqual([
      `<script type="module" nonce="${nonce}" src="${PLAYER_ADDRESS}">`,
    ]);
    expect(page).not.toMatch(/\sstyle=|\son\w+=/);
  }
  expect(nonces.size).toBe(2);
});

test("the script's address changes with it, so browsers keep it for ever", async () => {
  await using at = await RunsStage.start();
  const response = await at.send(PLAYER_ADDRESS);
  const text = await response.text();
  expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(PLAYER_ADDRESS).toContain(new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16));
  // The player contains no library.
  expect(text.length).toBeLessThan(50_000);
  expect((await at.send("/assets/run-player-0000000000000000.js")).status).toBe(404);
});

test("a range of a file passes through, and what a stranger uploaded is no page", async () => {
  await using given = await withRun();
  const { at, browser } = given;
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
  expect(told(document)).toEqual(["nosniff", "sandbox; default-src 'none'", expect.stringMatching(/^attachment; /)]);
  expect(told(part)).toEqual(["nosniff", "sandbox; default-src 'none'", "inline"]);
  for (const path of ["none", "a%00", "%ff", "a//b", ""])
    expect([path, (await browser.get(`${ADDRESS}/files/${path}`)).status]).toEqual([path, 404]);
});

test("the manifest is the one of the API, and links of the page lead to every file", async () => {
  await using given = await withRun();
  const { me, browser } = given;
  const manifest = await (await browser.get(`${ADDRESS}/manifest.json`)).json();
  expect(manifest).toEqual((await me.manifest("arm-1/r.1")).body);
  const page = await (await browser.get(ADDRESS)).text();
  const links = [...page.matchAll(/href="([^"]*)" download/g)].map(([, link]) => link ?? "");
  expect(links).toHaveLength(Object.keys(FILES).length);
  for (const link of links) expect((await browser.get(link)).status).toBe(200);
});

test("with the storage down or busy the pages say so, and when to come back", async () => {
  await using given = await withRun();
  const { at, browser } = given;
  for (const [drill, seconds] of [
    ["storage_unavailable", "2"],
    ["storage_busy", "1"],
  ] as const) {
    at.drills.names.add(drill);
    for (const path of ["/account/runs", ADDRESS, `${ADDRESS}/files/episode.jsonl`]) {
      const { status, headers } = await browser.get(path);
      expect([drill, path, status, headers.get("retry-after")]).toEqual([drill, path, 503, seconds]);
    }
    at.drills.names.clear();
  }
});
