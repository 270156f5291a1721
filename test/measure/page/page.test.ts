import { expect, test } from "bun:test";
import { Histogram } from "../../../src/measure/histogram.ts";
import { chartFigure } from "../../../src/measure/page/chart.ts";
import { distributionFigure } from "../../../src/measure/page/distribution.ts";
import { reportPage, tableOf } from "../../../src/measure/page/page.ts";
import { waterfallFigure } from "../../../src/measure/page/waterfall.ts";
import { from } from "../origin.ts";

/** Places of a series' points in the drawing, pixels. */
function places(svg: string): { x: number; y: number }[][] {
  return [...svg.matchAll(/<polyline class="trace[^"]*" points="([^"]*)"/g)].map(([, points = ""]) =>
    points.split(" ").map((point) => {
      const [x = Number.NaN, y = Number.NaN] = point.split(",").map(Number);
      return { x, y };
    }),
  );
}

/** Labels below the axis to the right, with their places. */
function labels(svg: string): Map<string, number> {
  const found = [...svg.matchAll(/<text class="mid" x="([\d.]+)" y="[\d.]+">([^<]+)<\/text>/g)];
  return new Map(found.map(([, x, text = ""]) => [text, Number(x)]));
}

test("each further nine of a distribution has the same room, and the slowest of n requests stands at n", () => {
  const latency = Histogram.of(Array.from({ length: 1000 }, (_, index) => index + 1));
  const svg = distributionFigure("Latency", [{ name: "one", latency }]).text;
  const at = labels(svg);
  const [p0 = 0, p90 = 0, p99 = 0, p999 = 0] = ["0 %", "90 %", "99 %", "99.9 %"].map((text) => at.get(text));
  expect(p99 - p90).toBeCloseTo(p90 - p0, 0);
  expect(p999 - p99).toBeCloseTo(p99 - p90, 0);
  const [points = []] = places(svg);
  expect(points[0]?.x).toBeCloseTo(p0, 0);
  expect(points.at(-1)?.x).toBeCloseTo(p999, 0);
  // A slower request is further up.
  for (const [index, { y }] of points.entries()) expect(y).toBeLessThanOrEqual(points[index - 1]?.y ?? y);
});

test("every point of a chart lies within its drawing, also of a single value, and every series is in the legend", () => {
  for (const points of [
    [[1, 5]],
    [
      [1, 0.02],
      [64, 900],
    ],
    [
      [1, 3],
      [2, 3],
    ],
  ] as const) {
    for (const scale of ["linear", "log"] as const) {
      const svg = chartFigure({
        caption: "Cost",
        x: { title: "robots", scale: "log" },
        y: { title: "ms", scale },
        series: [
          { name: "all threads", points },
          { name: "a < b", points, dashed: true, dots: true },
        ],
      }).text;
      for (const { x, y } of places(svg).flat()) {
        expect(x).toBeWithin(0, 921);
        expect(y).toBeWithin(0, 381);
      }
      expect(svg).toContain(">all threads<");
      expect(svg).toContain(">a &lt; b<");
    }
  }
});

test("a chart without a point says so", () => {
  const empty = distributionFigure("Latency", [{ name: "none", latency: new Histogram() }]).text;
  expect(empty).toContain("nothing was measured");
});

test("a bar of a waterfall begins where the one before it ended, and all together are as long as the request took", () => {
  const parts = [2, 0, 6, 2].map((ms, at) => ({ name: `part ${at}`, ms }));
  const svg = waterfallFigure("Way", [{ name: "Median request", totalMs: 10, parts }]).text;
  const bars = [...svg.matchAll(/<rect [^>]*x="([\d.]+)" y="\d+" width="([\d.]+)"/g)].map(([, x, width]) => ({
    from: Number(x),
    to: Number(x) + Number(width),
  }));
  expect(bars).toHaveLength(4);
  // A part of no length still has a bar of one pixel.
  expect(bars[2]?.from).toBeCloseTo(bars[0]?.to ?? 0, 0);
  expect(bars[3]?.from).toBeCloseTo(bars[2]?.to ?? 0, 0);
  const whole = (bars[3]?.to ?? 0) - (bars[0]?.from ?? 0);
  expect((bars[2]?.to ?? 0) - (bars[2]?.from ?? 0)).toBeCloseTo(whole * 0.6, 0);
  expect(svg).toContain("Median request: 10.00 ms");
});

test("the page escapes what it is told, and says where its figures come from", () => {
  const page = reportPage({
    ...{ suite: "http", question: "How long <really>?", from, meaning: ["A & B. Latency: from", "here to there."] },
    sections: [{ heading: "Figures", content: [tableOf(["name", "ms"], [["<b>", "1"]], ["left", "right"])] }],
  });
  for (const part of [
    "How long &lt;really&gt;?",
    "<li>A &amp; B.</li><li><strong>Latency:</strong> from here to there.</li>",
    '<td class="left">&lt;b&gt;</td><td>1</td>',
    "Maker(R) Chip, 7B13 @ 2 GHz, 2 cores, 8 GiB",
    "2026-01-02 03:04:05 UTC, commit abc1234",
    "Bun 1.4.5",
  ]) {
    expect(page).toContain(part);
  }
});
