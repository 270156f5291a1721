import { expect, test } from "bun:test";
import { chunkTable } from "../../../src/measure/plot/columns.ts";
import { CHUNK, CHUNK_COLUMNS } from "../../client/sample-chunk.ts";

test("the table is aligned under joint names and units", () => {
  const lines = chunkTable(CHUNK, CHUNK_COLUMNS).trimEnd().split("\n");
  expect(lines).toHaveLength(33);
  expect(lines[1]).toMatch(/^ *time +joint 1 +joint 2/);
  expect(lines[2]).toMatch(/^ +s +rad/);
  expect(new Set(lines.slice(3).map((line) => line.length)).size).toBe(1);
});
