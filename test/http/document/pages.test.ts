/** What holds for each page of the documentation. */
import { describe, expect, test } from "bun:test";
import { type Stage, stage } from "../../robot/stage.ts";

async function pageOf(at: Stage, path: string) {
  const response = await at.send(path);
  const text = await response.text();
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = ""]) => found);
  return { response, text, ids: all(/ id="([^"]+)"/g), links: all(/ href="([^"]+)"/g) };
}

const PAGES = ["episodes", "language-models", "robot-runs"].map((name) => `/docs/${name}`);

describe.each(["/docs", ...PAGES])("%s", (path) => {
  test("is served without a key, has no script, loads nothing, and its policy allows its own style alone", async () => {
    const { response, text } = await pageOf(await stage(), path);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const words = text.replace(/<pre>[\s\S]*?<\/pre>/g, "").replace(/<img src="data:image\/jpeg;base64,[^>]*>/g, "");
    const foreign = /<script|<link|<iframe|<img|https?:\/|url\(| on\w+="| style="|@import/i;
    const broken = /undefined|\[object|NaN|\{\{|<!-- |localhost|tdn_/;
    // A client in an example may name an address; the page on episodes has none.
    const watched = path === "/docs/episodes" ? text : words;
    expect([foreign.exec(watched)?.[0], broken.exec(words)?.[0]]).toEqual([undefined, undefined]);
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "";
    const digest = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(response.headers.get("content-security-policy")).toStartWith(
      `default-src 'none'; style-src 'sha256-${digest}'`,
    );
  });
});

describe.each(PAGES)("%s", (path) => {
  test("every link leads somewhere, and /docs and the page lead to each other", async () => {
    const at = await stage();
    const { ids, links } = await pageOf(at, path);
    expect(ids.length).toBe(new Set(ids).size);
    expect([...new Set(links.filter((link) => !ids.includes(link.slice(1))))]).toEqual(["../docs"]);
    expect((await pageOf(at, "/docs")).links).toContain(path.slice(1));
  });
});
