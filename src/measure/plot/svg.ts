/**
 * A chunk as an SVG picture: one small panel per column, time to the right, each with its own scale, name and unit.
 *
 * No scripts and no outside fonts; colours follow the viewer's light or dark setting.
 */
import { type Column, nameParts } from "./columns.ts";

export interface Plot {
  readonly title: string;
  /** One line of facts below the title. */
  readonly subtitle: string;
  /** Seconds between rows. */
  readonly dt: number;
  readonly rows: readonly (readonly number[])[];
  readonly columns: readonly Column[];
}

// Pixels.
const PANEL = { width: 400, height: 74, left: 58, above: 22, below: 10 } as const;
const GAP = 26;
const MARGIN = 24;
const HEAD = 78;
const FOOT = 44;

const STYLE = `
  svg { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  .page { fill: #ffffff } .panel { fill: #f5f6f8 } .text { fill: #1d2330 } .mute { fill: #626c7c }
  .grid { stroke: #dce0e6; stroke-width: 1 } .zero { stroke: #aab2bf; stroke-width: 1 }
  .trace { fill: none; stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round }
  .a { stroke: #1f66b0 } .b { stroke: #b4530a } .da { fill: #1f66b0 } .db { fill: #b4530a }
  .title { font-size: 17px; font-weight: 600 } .group { font-size: 13px; font-weight: 600 } .name { font-weight: 600 } .end { text-anchor: end } .mid { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14161a } .panel { fill: #1c2026 } .text { fill: #e7e9ee } .mute { fill: #9aa4b3 }
    .grid { stroke: #2e343d } .zero { stroke: #57606d }
    .a { stroke: #78b0f0 } .b { stroke: #f0a158 } .da { fill: #78b0f0 } .db { fill: #f0a158 }
  }`;

interface Trace {
  readonly column: Column;
  readonly label: string;
  readonly values: readonly number[];
}

/** The whole picture. Columns whose names begin with the same word stand below each other. */
export function plotSvg(plot: Plot): string {
  const strips = stripsOf(plot);
  const rowsMax = Math.max(...strips.map((strip) => strip.traces.length));
  const rowPx = PANEL.above + PANEL.height + PANEL.below;
  const width = MARGIN * 2 + strips.length * (PANEL.left + PANEL.width) + (strips.length - 1) * GAP;
  const height = HEAD + rowsMax * rowPx + FOOT;
  const seconds = Math.max(plot.dt, (plot.rows.length - 1) * plot.dt);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${xmlText(plot.title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    `<text class="text title" x="${MARGIN}" y="34">${xmlText(plot.title)}</text>`,
    `<text class="mute" x="${MARGIN}" y="54">${xmlText(plot.subtitle)}</text>`,
  ];
  for (const [index, strip] of strips.entries()) {
    const x = MARGIN + index * (PANEL.left + PANEL.width + GAP) + PANEL.left;
    for (const [row, trace] of strip.traces.entries()) {
      const y = HEAD + row * rowPx + PANEL.above;
      const last = row === strip.traces.length - 1;
      parts.push(panel({ x, y, trace, dt: plot.dt, seconds, tone: index % 2 === 0 ? "a" : "b", last }));
    }
  }
  parts.push("</svg>");
  return `${parts.join("\n")}\n`;
}

/** Columns grouped by the first word of their name; without groups, two strips of equal length. */
function stripsOf(plot: Plot): { traces: Trace[] }[] {
  const traces = plot.columns.map((column, index): Trace => {
    const { group, rest } = nameParts(column.name);
    return { column, label: group === "" ? rest : `${group} ${rest}`, values: plot.rows.map((row) => row[index] ?? 0) };
  });
  const groups = new Map<string, Trace[]>();
  for (const trace of traces) {
    const { group } = nameParts(trace.column.name);
    groups.set(group, [...(groups.get(group) ?? []), trace]);
  }
  if (groups.size === 2) return [...groups.values()].map((group) => ({ traces: group }));
  const half = Math.ceil(traces.length / 2);
  return [{ traces: traces.slice(0, half) }, { traces: traces.slice(half) }].filter((strip) => strip.traces.length > 0);
}

interface PanelAt {
  /** Top left corner of the drawing area, pixels. */
  readonly x: number;
  readonly y: number;
  readonly trace: Trace;
  readonly dt: number;
  readonly seconds: number;
  readonly tone: "a" | "b";
  /** The lowest panel of a strip carries the time axis. */
  readonly last: boolean;
}

function panel({ x, y, trace, dt, seconds, tone, last }: PanelAt): string {
  const { low, high, ticks, decimals } = scale(trace.values);
  const px = (time: number): string => (x + (time / seconds) * PANEL.width).toFixed(1);
  const py = (value: number): string => (y + (1 - (value - low) / (high - low)) * PANEL.height).toFixed(1);
  const bottom = y + PANEL.height;
  const points = trace.values.map((value, row) => [px(row * dt), py(value)] as const);
  const unit =
    trace.column.unit === "" ? "" : ` <tspan class="mute" font-weight="400">(${xmlText(trace.column.unit)})</tspan>`;
  const [first = 0, final = 0] = [trace.values[0], trace.values.at(-1)];
  const fine = Math.max(2, decimals + 1);
  const span = `${first.toFixed(fine)} → ${final.toFixed(fine)}`.replaceAll("-", "−");
  const parts = [
    `<g role="img" aria-label="${xmlText(`${trace.label} ${trace.column.unit}, ${span}`.trim())}">`,
    `<text class="text name" x="${x}" y="${y - 7}">${xmlText(trace.label)}${unit}</text>`,
    `<text class="mute end" x="${x + PANEL.width}" y="${y - 7}">${span}</text>`,
    `<rect class="panel" x="${x}" y="${y}" width="${PANEL.width}" height="${PANEL.height}" rx="3"/>`,
  ];
  for (const time of timeTicks(seconds)) {
    parts.push(`<path class="grid" d="M${px(time)} ${y}V${bottom}"/>`);
    if (last) parts.push(`<text class="mute mid" x="${px(time)}" y="${bottom + 17}">${time.toFixed(1)}</text>`);
  }
  for (const tick of ticks) {
    parts.push(`<path class="${tick === 0 ? "zero" : "grid"}" d="M${x} ${py(tick)}H${x + PANEL.width}"/>`);
    const text = tick.toFixed(decimals).replace("-", "−");
    parts.push(`<text class="mute end" x="${x - 8}" y="${(Number(py(tick)) + 4).toFixed(1)}">${text}</text>`);
  }
  parts.push(`<polyline class="trace ${tone}" points="${points.map((point) => point.join(",")).join(" ")}"/>`);
  for (const [cx, cy] of points) parts.push(`<circle class="d${tone}" cx="${cx}" cy="${cy}" r="1.9"/>`);
  if (last) parts.push(`<text class="mute mid" x="${x + PANEL.width / 2}" y="${bottom + 35}">time (s)</text>`);
  parts.push("</g>");
  return parts.join("");
}

/** A range a little wider than the values, with 2 to 4 round ticks inside. A motionless column gets a range of ±0.01. */
function scale(values: readonly number[]): { low: number; high: number; ticks: number[]; decimals: number } {
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const margin = max - min < 0.02 ? 0.01 : (max - min) * 0.1;
  const [low, high] = [min - margin, max + margin];
  const step = roundStep((high - low) / 4);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks: number[] = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k === 0 ? 0 : k * step);
  return { low, high, ticks, decimals };
}

/** The smallest of 1, 2, 5 times a power of ten that is not below `width`. */
function roundStep(width: number): number {
  const power = 10 ** Math.floor(Math.log10(width));
  const lead = width / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

function timeTicks(seconds: number): number[] {
  const step = Math.max(0.1, roundStep(seconds / 5));
  return Array.from({ length: Math.floor(seconds / step + 1e-6) + 1 }, (_, index) => index * step);
}

function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
