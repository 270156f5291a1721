/**
 * Latency distributions side by side: to the right the percentile, on an axis of 1 / (1 − p), which gives each further nine the same
 * room, because that is where the requests are that a robot feels; upwards the latency.
 */
import type { Html } from "../../web/markup.ts";
import type { Histogram } from "../histogram.ts";
import { chartFigure } from "./chart.ts";

interface Distribution {
  readonly name: string;
  readonly latency: Histogram;
  readonly dashed?: boolean;
}

export function distributionFigure(caption: string, distributions: readonly Distribution[]): Html {
  const most = Math.max(1, ...distributions.map(({ latency }) => latency.count));
  return chartFigure({
    caption,
    x: { title: "percentile of requests", scale: "log", ticks: percentTicks(most) },
    y: { title: "ms", scale: "log" },
    series: distributions.map(({ name, latency, dashed = false }) => ({ name, dashed, points: pointsOf(latency) })),
  });
}

/** The greatest of n values stands at 1 / (1 − p) = n: nothing is known beyond it. */
function pointsOf(latency: Histogram): [number, number][] {
  if (latency.count === 0) return [];
  const least: [number, number] = [1, latency.minMs];
  const rest = latency
    .points()
    .map(({ share, ms }): [number, number] => [Math.min(latency.count, 1 / (1 - share)), ms]);
  // A logarithmic axis has no zero.
  return [least, ...rest].map(([x, ms]) => [x, Math.max(0.001, ms)]);
}

/** 0 %, 50 %, 90 %, 99 % and so on, as far as the data goes and one further. */
function percentTicks(count: number): { at: number; text: string }[] {
  const ticks = [
    { at: 1, text: "0 %" },
    { at: 2, text: "50 %" },
    { at: 10, text: "90 %" },
  ];
  for (let nines = 2; nines < 9 && 10 ** (nines - 1) < count; nines += 1) {
    const text = nines === 2 ? "99 %" : `99.${"9".repeat(nines - 2)} %`;
    ticks.push({ at: 10 ** nines, text });
  }
  return ticks;
}
