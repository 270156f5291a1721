/** `docs/architecture.md` names files and functions that are there, and its ways are as short as it says. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const text = await Bun.file(resolve(ROOT, "docs/architecture.md")).text();

/** The file of each way that may be entered twice: it drives the others. */
const DRIVERS = [
  ["One observation over HTTP", "src/robot/attempt.ts"],
  ["One observation on a socket", "src/robot/attempt.ts"],
  ["One response of a language model", "src/llm/live.ts"],
  ["One file of a run", "src/runs/store/files.ts"],
] as const;
const FILES_MAX = 20;

function section(title: string): string {
  const [, found = ""] = text.split(`\n## ${title}\n`);
  return found.split("\n## ")[0] ?? "";
}

/** The first file and function of each numbered line. */
function way(title: string): { path: string; name: string }[] {
  const lines = section(title).matchAll(/^\d+\. `([^`]+)` `(\w+)`/gm);
  return [...lines].map(([, path = "", name = ""]) => ({ path, name }));
}

test("every path that it names is there", () => {
  const paths = new Set(
    [...text.matchAll(/`((?:src|native|bench|test|models)\/[^`\s]*)`/g)].map(([, path = ""]) => path),
  );
  expect(paths.size).toBeGreaterThan(50);
  expect([...paths].filter((path) => !existsSync(resolve(ROOT, path)))).toEqual([]);
});

test("every function that it names beside a file is declared in that file", async () => {
  const pairs = [...text.matchAll(/`((?:src|native)\/[^`\s]+\.(?:ts|rs))` `(\w+)`/g)];
  expect(pairs.length).toBeGreaterThan(40);
  const absent = [];
  for (const [, path = "", name = ""] of pairs) {
    const source = await Bun.file(resolve(ROOT, path)).text();
    const declared = new RegExp(
      `(function\\*?|const|class) ${name}\\b|^  (private |async |static )*\\*?${name}(<[^>]*>)?\\(`,
      "m",
    );
    if (!declared.test(source)) absent.push(`${path} ${name}`);
  }
  expect(absent).toEqual([]);
});

for (const [title, driver] of DRIVERS) {
  test(`${title}: at most ${FILES_MAX} files, none entered twice but the one that drives`, () => {
    const paths = way(title).map(({ path }) => path);
    expect(paths).toContain(driver);
    expect(paths.length).toBeLessThanOrEqual(FILES_MAX);
    const others = paths.filter((path) => path !== driver);
    expect([...new Set(others)]).toEqual(others);
  });
}

test("at least twenty likely changes, each with a place that is there", () => {
  const rows = section("Where to change what")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| to change") && !line.startsWith("| -"));
  expect(rows.length).toBeGreaterThanOrEqual(20);
  expect(rows.filter((row) => !/`[\w./-]+`/.test(row))).toEqual([]);
});
