/** The pages of runs as HTML. */
import { expect, test } from "bun:test";
import { fileAddress, listAddress, runAddress, sizeText } from "../../../src/runs/views/address.ts";
import { type RunsPage, runsPage } from "../../../src/runs/views/list.ts";
import { runPage } from "../../../src/runs/views/run.ts";
import { HOSTILE } from "../../account/pages/samples.ts";

const VIEWER = { email: "me@example.org", csrf: "csrf-1" };

function listed(text: string, changes: Partial<RunsPage> = {}): string {
  const runs = [{ robot: text, run: text, size: 2048, files: 3, completedAt: 1_700_000_000 }];
  const usage = { stored: 2 ** 30, reserved: 0, quota: 100 * 2 ** 30 };
  return runsPage({ viewer: VIEWER, usage, runs, robot: text, later: false, next: undefined, ...changes });
}

function played(text: string, contentType = "video/mp4"): string {
  const files = [
    { path: "episode.jsonl", size: 100, content_type: "application/jsonl" },
    { path: `videos/${text}`, size: 1, content_type: contentType },
  ];
  return runPage(VIEWER, { robot: text, run: text, completed_at: 1, size: 101, files }, "nonce");
}

async function elementsOf(page: string): Promise<string[]> {
  const found: string[] = [];
  const rewriter = new HTMLRewriter().on("*", {
    element(element) {
      const names = [...element.attributes].map(([name]) => name ?? "");
      found.push(`${element.tagName} ${names.join(" ")}`);
    },
  });
  await rewriter.transform(new Response(page)).text();
  return found;
}

test("names and paths are text, whatever is in them", async () => {
  for (const page of [listed, played]) {
    expect(await elementsOf(page(HOSTILE))).toEqual(await elementsOf(page("arm-1")));
    expect(page(HOSTILE)).toContain("&lt;script&gt;");
  }
});

test("an address has every segment of a path encoded by itself", () => {
  const name = { robot: "a b", run: "x/y" };
  expect(runAddress(name)).toBe("/account/runs/a%20b/x%2Fy");
  expect(fileAddress(name, "videos/ü?#%.mp4")).toBe("/account/runs/a%20b/x%2Fy/files/videos/%C3%BC%3F%23%25.mp4");
  expect([listAddress({ robot: "" }), listAddress({ robot: "a&b", after: "1/2" })]).toEqual([
    "/account/runs",
    "/account/runs?robot=a%26b&after=1%2F2",
  ]);
});

test("sizes read in the largest unit that fits", () => {
  expect([0, 1, 1023, 1536, 2 ** 20, 123.4 * 2 ** 20, 100 * 2 ** 30].map(sizeText)).toEqual([
    "0 bytes",
    "1 byte",
    "1023 bytes",
    "1.5 KiB",
    "1 MiB",
    "123 MiB",
    "100 GiB",
  ]);
});

test("the list says when there is nothing, and deletes only after a second click", () => {
  expect(listed("", { runs: [] })).toContain("There are no runs yet.");
  expect(listed("arm", { runs: [] })).toContain("There are no runs of this robot.");
  expect(listed("arm")).toMatch(/<details class="revoke">[\s\S]*action="\/account\/runs\/delete"/);
  const full = { stored: 2 ** 31, reserved: 5, quota: 2 ** 30 };
  expect(listed("arm", { usage: full })).toMatch(/class="full" width="100%"/);
});

test("every field and button of the pages has a name for screen readers", async () => {
  const page = played("top.mp4");
  for (const id of ["speed", "window"]) expect(page).toContain(`for="${id}"`);
  expect(page).toMatch(/<input class="scrubber"[^>]* aria-label="Time in the run"/);
  for (const [, attributes = "", inside = ""] of page.matchAll(/<button([^>]*)>([\s\S]*?)<\/button>/g))
    expect(/aria-label=/.test(attributes) || /\w/.test(inside)).toBe(true);
  const ids = [...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id ?? "");
  expect(new Set(ids).size).toBe(ids.length);
});

test("only videos are played, and their files fetch no more than they need", () => {
  expect(played("top.mp4")).toMatch(/<video src="[^"]*\/files\/videos\/top\.mp4" data-size="1" preload="metadata"/);
  expect(played("top.html", "text/html")).not.toContain("<video");
});
