/** What the OpenAPI document says to people is prose. */
import { expect, test } from "bun:test";
import { stage } from "../../robot/stage.ts";
import { published } from "./published.ts";

/** Summaries, descriptions and titles at any depth. */
function proseIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    /^(summary|description|title)$/.test(key) && typeof inner === "string" ? [inner] : proseIn(inner),
  );
}

test("no summary, description or title contains source code", async () => {
  const { document } = await published(await stage());
  const prose = proseIn(document);
  expect(prose.length).toBeGreaterThan(300);
  expect(prose.filter((text) => (text.match(/`/g)?.length ?? 0) % 2 !== 0)).toEqual([]);
  const words = prose.map((text) => text.replaceAll(/`[^`]*`/g, "code"));
  const source = /=>|\$\{|\bfunction\b|" \+|\+ "|\bconst\b|\bundefined\b|\[object/;
  expect(words.filter((text) => source.test(text))).toEqual([]);
});
