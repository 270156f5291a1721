import { expect, test } from "bun:test";
import { COLUMNS, type ColumnName } from "../../../src/measure/chunk/load.ts";
import { chunkReport } from "../../../src/measure/chunk/report.ts";
import type { ChunkMeasurement } from "../../../src/measure/chunk/suite.ts";
import { from } from "../origin.ts";

const measurement: ChunkMeasurement = {
  model: "a/b",
  device: "cpu",
  robots: 8,
  chunks: 100,
  ms: Object.fromEntries(
    COLUMNS.map((name) => [name, Array.from({ length: 100 }, (_, index) => index + 1)]),
  ) as unknown as Record<ColumnName, number[]>,
  seconds: 4,
  reference: true,
};

test("the report names machine, commit, date, versions and what is outside the window", () => {
  const text = chunkReport(from, [measurement]).text;
  for (const part of ["abc1234", "2026-01-02", "Bun 1.4.5", "2 cores", "robots 8", "25.0 chunks/s"]) {
    expect(text).toContain(part);
  }
  expect(text).toContain("random weights");
  expect(text).toContain("Outside the window");
  for (const column of COLUMNS)
    expect(text).toMatch(new RegExp(`^${column} +50\\.000 +90\\.000 +99\\.000 +100\\.000$`, "m"));
});
