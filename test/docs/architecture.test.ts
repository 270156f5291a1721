/** `docs/architecture.md` names files and functions that are there, and its ways are short. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const text = await Bun.file(resolve(ROOT, "docs/architecture.md")).text();

/** Each way, the file of it that may be entered twice, and how many files it may name, those after "with" included. */
const WAYS = [
  ["One observation over HTTP", "src/robot/attempt.ts", 22],
  ["One response of a language model", "src/llm/live.ts", 17],
  ["One file of a run", "src/runs/store/files.ts", 14],
] as const;

function section(title: string): string {
  const [, found = ""] = text.split(`\n## ${title}\n`);
  return found.split("\n## ")[0] ?? "";
}

/** The numbered steps, each as one line. */
function steps(title: string): string[] {
  return [...section(title).matchAll(/^\d+\. .*(?:\n {3}.*)*/gm)].map(([step]) => step);
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

for (const [title, driver, filesMax] of WAYS) {
  test(`${title}: at most ${filesMax} files, none entered twice but the one that drives`, () => {
    const entered = steps(title).map((step) => /^\d+\. `([^`]+)` `\w+`/.exec(step)?.[1] ?? step);
    expect(entered).toContain(driver);
    const others = entered.filter((path) => path !== driver);
    expect([...new Set(others)]).toEqual(others);
    const named = steps(title).flatMap((step) =>
      [...step.matchAll(/`((?:src|native)\/[^`]+)`/g)].map(([, path]) => path),
    );
    expect(new Set(named).size).toBeLessThanOrEqual(filesMax);
  });
}

test("at least twenty likely changes, each with a place that is there", () => {
  const rows = section("Where to change what")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| to change") && !line.startsWith("| -"));
  expect(rows.length).toBeGreaterThanOrEqual(20);
  expect(rows.filter((row) => !/`[\w./-]+`/.test(row))).toEqual([]);
});
