import { expect, test } from "bun:test";
import { bench } from "../../src/cli/bench.ts";
import { given } from "../../src/cli/frame/command.ts";
import { EXIT, Problem } from "../../src/error/problem.ts";

test("wrong use of bench exits with 2", async () => {
  for (const argv of [
    [],
    ["nonsense"],
    ["chunk", "more"],
    ["chunk", "--robots", "0"],
    ["chunk", "--robots", "65"],
    ["chunk", "--chunks", "none"],
    ["chunk", "--chunks", "0"],
    ["chunk", "--chunks", "10000001"],
    ["chunk", "--device", "cuda:0"],
    ["chunk", "--url", "http://x", "--device", "cpu"],
    ["chunk", "--wat"],
    ["chunk", "--seconds", "2"],
    ["episode", "--chunks", "2"],
    ["episode", "--seconds", "0"],
    ["episode", "--seconds", "3601"],
    ["episode", "--robots", "65"],
    ["episode", "--json", "-", "--csv", "-"],
    ["chunk", "--record", "run"],
  ]) {
    const parsed = given(bench, argv);
    const end = parsed instanceof Problem ? parsed : await bench.run(parsed);
    expect(end).toMatchObject({ exit: EXIT.usage });
  }
});

test("a recording goes to a folder of its own, and is refused before anything is measured", async () => {
  const parsed = given(bench, ["episode", "--record", "test/cli"]);
  const end = parsed instanceof Problem ? parsed : await bench.run(parsed);
  expect(end).toMatchObject({ exit: EXIT.failed, message: expect.stringContaining("is not empty") });
});
