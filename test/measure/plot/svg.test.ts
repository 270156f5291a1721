import { expect, test } from "bun:test";
import { plotSvg } from "../../../src/measure/plot/svg.ts";
import { CHUNK_COLUMNS as columns } from "../../client/sample-chunk.ts";

const rows = Array.from({ length: 30 }, (_, row) =>
  columns.map((_, column) => Math.sin(row / 9 + column) * (column + 1)),
);
const plot = { title: "a <model> & more", subtitle: "30 rows", dt: 1 / 30, rows, columns };

test("the plot has a titled panel with unit and trace for each of the 14 columns", () => {
  const svg = plotSvg(plot);
  expect(svg.match(/<polyline class="trace/g)).toHaveLength(14);
  expect(svg.match(/<circle /g)).toHaveLength(14 * 30);
  expect(svg.match(/\(rad\)/g)).toHaveLength(12);
  expect(svg.match(/\(0-1\)/g)).toHaveLength(2);
  for (const name of ["left joint 1", "left joint 6", "left gripper", "right joint 1", "right gripper"]) {
    expect(svg).toContain(`>${name}`);
  }
  expect(svg.match(/time \(s\)/g)).toHaveLength(2);
});

test("the plot is plain SVG: outside text is escaped, nothing runs, nothing is fetched", () => {
  const svg = plotSvg(plot);
  expect(svg).toContain("<title>a &lt;model&gt; &amp; more</title>");
  expect(svg).not.toMatch(/<script|href=|url\(|NaN|Infinity|undefined/);
  expect(svg).toContain("prefers-color-scheme: dark");
});

test("every point of a trace lies inside the picture", () => {
  const svg = plotSvg(plot);
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [];
  for (const [, x, y] of svg.matchAll(/cx="([\d.]+)" cy="([\d.]+)"/g)) {
    expect(Number(x)).toBeLessThanOrEqual(Number(width));
    expect(Number(y)).toBeLessThanOrEqual(Number(height));
  }
});

test("motionless, single-row and ungrouped chunks are drawn too", () => {
  for (const odd of [
    { ...plot, rows: rows.map(() => columns.map(() => 0.5)) },
    { ...plot, rows: rows.slice(0, 1) },
    {
      ...plot,
      columns: [1, 2, 3, 4, 5].map((at) => ({ name: `column${at}`, unit: "" })),
      rows: rows.map((row) => row.slice(0, 5)),
    },
  ]) {
    const svg = plotSvg(odd);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    expect(svg.match(/<polyline class="trace/g)).toHaveLength(odd.columns.length);
  }
});
