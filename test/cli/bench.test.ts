import { describe, expect, test } from "bun:test";
import { figureLines, withinLimits } from "../../bench/proof.ts";
import { PROOFS } from "../../bench/prove.ts";
import { machineName, mergeResults } from "../../bench/results.ts";
import { bench } from "../../src/cli/bench.ts";
import { given } from "../../src/cli/frame/command.ts";
import { EXIT, Problem } from "../../src/error/problem.ts";
import { COLUMNS, type ColumnName } from "../../src/measure/chunk/load.ts";
import { chunkReport } from "../../src/measure/chunk/report.ts";
import type { ChunkMeasurement } from "../../src/measure/chunk/suite.ts";
import type { Origin } from "../../src/measure/origin.ts";

const from: Origin = {
  date: "2026-01-02T03:04:05Z",
  commit: "abc1234",
  versions: { tendon: "0.1.0", bun: "1.4.5", onnxruntime: "1.30.0", libjpeg_turbo: "3.1.3" },
  machine: { cpu: "Maker(R) Chip, 7B13 @ 2 GHz", cores: 2, memory_gib: 8, gpu: "none" },
};
const measurement: ChunkMeasurement = {
  model: "a/b",
  device: "cpu",
  robots: 8,
  chunks: 100,
  ms: Object.fromEntries(
    COLUMNS.map((name) => [name, Array.from({ length: 100 }, (_, index) => index + 1)]),
  ) as unknown as Record<ColumnName, number[]>,
  seconds: 4,
  actionsSha256: "f".repeat(64),
  reference: true,
};

test("the report names machine, commit, date, versions, output hash and what is outside the window", () => {
  const text = chunkReport(from, [measurement]).text;
  for (const part of [
    "abc1234",
    "2026-01-02",
    "Bun 1.4.5",
    "2 cores",
    "robots 8",
    "25.0 chunks/s",
    "ffffffffffffffff",
  ]) {
    expect(text).toContain(part);
  }
  expect(text).toContain("random weights");
  expect(text).toContain("Outside the window");
  for (const column of COLUMNS)
    expect(text).toMatch(new RegExp(`^${column} +50\\.000 +90\\.000 +99\\.000 +100\\.000$`, "m"));
});

test("the CSV has one line per station, as many cells as its head", () => {
  const [head, ...lines] = chunkReport(from, [measurement]).csv.trimEnd().split("\n");
  expect(lines).toHaveLength(COLUMNS.length);
  // The processor's name holds a comma and is quoted.
  for (const line of lines) expect(line.replace(/"[^"]*"/g, "x").split(",")).toHaveLength(head?.split(",").length ?? 0);
});

test("results of a proof replace its earlier ones and leave the others alone", () => {
  const first = mergeResults("", "loop", from, [{ measure: "x", value: 1, unit: "ms", limit: 2 }]);
  const both = mergeResults(first, "decode", from, [{ measure: "y", value: 0.123456789, unit: "us" }]);
  const again = mergeResults(both, "loop", { ...from, commit: "new" }, [{ measure: "x, z", value: 3, unit: "ms" }]);
  const lines = again.trimEnd().split("\n");
  expect(lines).toHaveLength(3);
  expect(lines[1]).toStartWith("decode,y,0.123457,us,,");
  expect(lines[2]).toStartWith("loop,x; z,3,ms,,");
  expect(lines[2]).toContain(",new,");
  expect(new Set(lines.map((line) => line.split(",").length)).size).toBe(1);
  expect(machineName(from)).toBe("maker-chip-7b13-2-ghz-2-cores");
});

test("a limit is kept only by a figure that is there", () => {
  expect(withinLimits([{ measure: "x", value: 2, unit: "ms", limit: 2 }])).toBe(true);
  expect(withinLimits([{ measure: "x", value: 2.1, unit: "ms", limit: 2 }])).toBe(false);
  expect(withinLimits([{ measure: "x", value: Number.NaN, unit: "ms", limit: 2 }])).toBe(false);
  const negative = { measure: "x", value: -1, unit: "kB", limit: 2, least: 0 };
  expect(withinLimits([negative])).toBe(false);
  expect(figureLines([negative])).toEqual([["x", "-1", "kB", "TOO LOW, at least 0"]]);
});

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
  ]) {
    const parsed = given(bench, argv);
    const end = parsed instanceof Problem ? parsed : await bench.run(parsed);
    expect(end).toMatchObject({ exit: EXIT.usage });
  }
});

describe("small proofs", () => {
  for (const proof of PROOFS) {
    test(proof.name, async () => {
      const outcome = await proof.run("small");
      if (outcome instanceof Problem) throw new Error(outcome.message);
      expect(outcome.rows.length).toBeGreaterThan(0);
      expect(outcome.text).not.toBe("");
      for (const row of outcome.rows) expect(row.value, row.measure).not.toBeNaN();
    }, 120_000);
  }
});
