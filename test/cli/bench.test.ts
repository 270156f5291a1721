import { expect, test } from "bun:test";
import { SUITE_NAMES, SUITES } from "../../src/cli/bench/suites.ts";
import { bench } from "../../src/cli/bench.ts";
import { given, helpText } from "../../src/cli/frame/command.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";

test("wrong use of bench exits with 2", async () => {
  for (const argv of [
    [],
    ["nonsense"],
    ["scale"],
    ["chunk", "more"],
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
    ["gpu", "--device", "echo"],
    ["gpu", "--device", "gpu"],
    ["gpu", "--url", "http://x"],
    ["gpu", "--batch", "17"],
    ["gpu", "--gpu", "cuda_grph=true"],
    ["gpu", "--gpu", "precision=f64"],
    ["gpu", "--within", "0"],
    ["gpu", "--within", "little"],
    ["gpu", "--within", "Infinity"],
    ["chunk", "--within", "0.2"],
    ["chunk", "--batch", "2"],
    ["episode", "--model", "lab/arm"],
  ]) {
    const parsed = given(bench, argv);
    const end = parsed instanceof Problem ? parsed : await bench.run(parsed);
    expect(end).toMatchObject({ exit: EXIT.usage });
  }
});

test("the page of bench says what every suite measures, and what is usual for its flag", () => {
  const page = helpText(bench);
  for (const name of SUITE_NAMES) {
    expect(page).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
    expect(page).toContain(`${name} 1 to ${SUITES[name].max} (default ${SUITES[name].usual})`);
  }
});
