import { describe, expect, test } from "bun:test";
import { figureLines, withinLimits } from "../../bench/proof.ts";
import { PROOFS } from "../../bench/prove.ts";
import { machineName, mergeResults } from "../../bench/results.ts";
import { Problem } from "../../src/std/problem.ts";
import { from } from "../measure/origin.ts";

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
