/** A chart of lines as SVG with its legend below: one axis to the right, one upwards, each linear or logarithmic. */
import { type Html, html } from "../../web/markup.ts";
import { TONES } from "./style.ts";

interface Axis {
  readonly title: string;
  readonly scale: "linear" | "log";
  /** Where lines of the grid are; round values within the data by default. */
  readonly ticks?: readonly Tick[];
}

interface Tick {
  readonly at: number;
  readonly text: string;
}

export interface Series {
  readonly name: string;
  /** Ascending in x; on a logarithmic axis only what is above 0. */
  readonly points: readonly (readonly [x: number, y: number])[];
  readonly dashed?: boolean;
  /** A dot at every point: for few points, each of which was measured by itself. */
  readonly dots?: boolean;
}

interface Chart {
  /** What it shows, as a sentence or a title. */
  readonly caption: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
}

// Pixels of the drawing, which is scaled to the width of the page.
const WIDTH = 920;
const HEIGHT = 380;
const LEFT = 62;
const RIGHT = 24;
const ABOVE = 26;
const BELOW = 50;
const TICKS_MAX = 6;

/** From a value to its place, 0 to 1. */
interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly Tick[];
}

export function chartFigure(chart: Chart): Html {
  const points = chart.series.flatMap((series) => series.points);
  if (points.length === 0) return html`<p class="soft">${chart.caption}: nothing was measured.</p>`;
  const x = scaleOf(
    chart.x,
    points.map(([value]) => value),
  );
  const y = scaleOf(
    chart.y,
    points.map(([, value]) => value),
  );
  const px = (value: number): number => LEFT + x.place(value) * (WIDTH - LEFT - RIGHT);
  const py = (value: number): number => HEIGHT - BELOW - y.place(value) * (HEIGHT - ABOVE - BELOW);
  const bottom = HEIGHT - BELOW;
  return html`<figure>
<figcaption>${chart.caption}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${chart.caption}">
${y.ticks.map(({ at, text }) => html`<path class="grid" d="M${LEFT} ${round(py(at))}H${WIDTH - RIGHT}"/><text class="end" x="${LEFT - 8}" y="${round(py(at) + 4)}">${text}</text>`)}
${x.ticks.map(({ at, text }) => html`<path class="grid" d="M${round(px(at))} ${ABOVE}V${bottom}"/><text class="mid" x="${round(px(at))}" y="${bottom + 18}">${text}</text>`)}
<path class="frame" d="M${LEFT} ${bottom}H${WIDTH - RIGHT}"/>
<text x="${LEFT - 8}" y="14" class="end">${chart.y.title}</text>
<text class="mid" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}">${chart.x.title}</text>
${chart.series.map((series, at) => trace(series, at % TONES, px, py))}
</svg>
${legend(chart.series)}
</figure>
`;
}

function trace(
  { points, dashed, dots }: Series,
  tone: number,
  px: (value: number) => number,
  py: (value: number) => number,
): Html {
  const places = points.map(([x, y]) => [round(px(x)), round(py(y))] as const);
  const kind = dashed === true ? " dashed" : "";
  const line = html`<polyline class="trace stroke-${tone}${kind}" points="${places.map((place) => place.join(",")).join(" ")}"/>`;
  if (dots !== true) return line;
  return html`${line}${places.map(([x, y]) => html`<circle class="fill-${tone}" cx="${x}" cy="${y}" r="3.5"/>`)}`;
}

function legend(series: readonly Series[]): Html {
  const item = ({ name, dashed }: Series, at: number): Html =>
    html`<li><svg viewBox="0 0 26 12" aria-hidden="true"><path class="trace stroke-${at % TONES}${dashed === true ? " dashed" : ""}" d="M0 6H26"/></svg>${name}</li>`;
  return html`<ul class="legend">${series.map(item)}</ul>`;
}

function scaleOf({ scale, ticks }: Axis, values: readonly number[]): Scale {
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const shown = ticks ?? (scale === "log" ? logTicks(least, greatest) : linearTicks(greatest));
  const at = shown.map((tick) => tick.at);
  // The grid may reach beyond the data, never the other way round.
  const [from, to] = [Math.min(scale === "log" ? least : 0, ...at), Math.max(greatest, ...at)];
  const measure = scale === "log" ? Math.log10 : (value: number) => value;
  const span = measure(to) - measure(from);
  return { ticks: shown, place: (value) => (span === 0 ? 0.5 : (measure(value) - measure(from)) / span) };
}

/** 1, 2 and 5 times powers of ten around the data; over more than two powers of ten only the powers. */
function logTicks(least: number, greatest: number): Tick[] {
  const leads = greatest / least > 100 ? [1] : [1, 2, 5];
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(greatest)); power += 1) {
    all.push(...leads.map((lead) => lead * 10 ** power));
  }
  const first = all.findLastIndex((at) => at <= least * 1.0001);
  const last = all.findIndex((at) => at >= greatest * 0.9999);
  return all.slice(Math.max(0, first), last < 0 ? all.length : last + 1).map(tickAt);
}

function linearTicks(greatest: number): Tick[] {
  if (greatest <= 0) return [0, 1].map(tickAt);
  const power = 10 ** Math.floor(Math.log10(greatest / TICKS_MAX));
  const step = [1, 2, 5, 10].map((lead) => lead * power).find((one) => one * TICKS_MAX >= greatest) ?? greatest;
  return Array.from({ length: Math.ceil(greatest / step - 1e-9) + 1 }, (_, index) => tickAt(index * step));
}

function tickAt(at: number): Tick {
  return { at, text: String(Number(at.toPrecision(6))) };
}

/** Tenths of a pixel are enough, and short. */
function round(px: number): number {
  return Math.round(px * 10) / 10;
}
