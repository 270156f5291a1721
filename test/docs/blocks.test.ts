import { expect, test } from "bun:test";
import { blocksOf, missingLines } from "./blocks.ts";

test("an output belongs to the command right before it", () => {
  const text = "a\n```sh\nls\n```\n```text\nx\n```\n\n```text\npicture\n```\n```toml\nk = 1\n```\n";
  expect(blocksOf(text)).toEqual([
    { language: "sh", code: "ls\n", output: "x\n" },
    { language: "text", code: "picture\n", output: undefined },
    { language: "toml", code: "k = 1\n", output: undefined },
  ]);
});

test("a shown output is compared but for ids, times and what it leaves out", () => {
  const real = "session anon-7hq, step 0\n30 rows\ntiming in ms: decode 1.00\n0.000  0.1671 -0.25 9\nend\n";
  expect(missingLines("session anon-0Vc, step 0\n…\n0.000  0.1672  -0.25 …\n…\n", real)).toEqual([]);
  expect(missingLines("session anon-0Vc, step 1\n…\n", real)).toEqual(["session anon-0Vc, step 1"]);
  expect(missingLines("session anon-0Vc, step 0\n0.000  0.1672  -0.25 9\n…\n", real)).toHaveLength(1);
  expect(missingLines("…\n0.000  0.2672  -0.25 9\nend\n", real)).toContain("0.000  0.2672  -0.25 9");
  expect(missingLines("…\n0.000  0.1671  -0.25 9\n", real)).toEqual(["the end"]);
});
