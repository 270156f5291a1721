/** Usage by day and model: stacked bars as SVG, and below them the same numbers as tables. */
import { dayText } from "../../std/calendar.ts";
import { section } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { CENT, dollars, money, moneyText } from "../../web/money.ts";
import { shortDay } from "../../web/time.ts";
import { byModel, countsText, nameOf, type Series, seriesOf, totalOf, type UsageRow, usageTables } from "./usage.ts";

/** Usage of this many days is shown, today included. */
export const DAYS = 30;
const LABEL_EVERY_DAYS = 7;
const TICKS_MAX = 4;
const PLOT_PX = 180;
const ABOVE_PX = 8;
const BELOW_PX = 26;
const HEIGHT_PX = ABOVE_PX + PLOT_PX + BELOW_PX;
const DIGIT_PX = 7;
/** Width of a bar, as a share of its day's width. */
const BAR_SHARE = 0.72;

export function usageSection(usage: readonly UsageRow[], today: number): Html {
  const days = Array.from({ length: DAYS }, (_, at) => today - DAYS + 1 + at);
  const rows = usage.filter(({ day }) => days.includes(day));
  return section(
    "usage",
    "Usage",
    html`${rows.length === 0 ? html`<p>Nothing was used in the last ${DAYS} days.</p>` : html`${chart(rows, days)}${usageTables(rows, DAYS)}`}`,
  );
}

/** A step of 1, 2 or 5 times a power of ten nano-dollars, such that four steps at most reach `max`. */
export function scaleOf(max: bigint): { readonly step: bigint; readonly top: bigint } {
  if (max <= 0n) return { step: CENT, top: CENT };
  for (let unit = 1n; ; unit *= 10n) {
    for (const factor of [1n, 2n, 5n]) {
      const step = unit * factor;
      if (step * BigInt(TICKS_MAX) < max) continue;
      return { step, top: step * ((max + step - 1n) / step) };
    }
  }
}

function chart(rows: readonly UsageRow[], days: readonly number[]): Html {
  const series = seriesOf(rows);
  const columns = days.map((day) => ({ day, rows: rows.filter((row) => row.day === day) }));
  const totals = columns.map((column) => ({ day: column.day, ...totalOf(column.rows) }));
  const busiest = totals.reduce((most, one) => (one.cost > most.cost ? one : most));
  const scale = scaleOf(busiest.cost);
  const all = totalOf(rows);
  // Two drawings side by side, because the axis has a fixed width and the plot takes the rest: no text is scaled.
  return html`<figure class="chart">
<figcaption id="chart-words"><span class="figure"><span class="large">${money(all.cost)}</span> in the last ${DAYS} days</span> <span class="soft more">${countsText(rows)}; the most on ${shortDay(busiest.day)}, ${moneyText(busiest.cost)}. Days are UTC.</span></figcaption>
<div class="plot" role="img" aria-labelledby="chart-words">
${axis(scale)}
<svg class="bars" width="100%" height="${HEIGHT_PX}" aria-hidden="true" focusable="false">
${ticksOf(scale).map((tick) => html`<line class="grid" x1="0%" x2="100%" y1="${heightAt(tick, scale.top)}" y2="${heightAt(tick, scale.top)}"/>`)}
${columns.map(({ day, rows }, at) => bars(day, rows, at, series, scale.top))}
${days.map((day, at) => (at % LABEL_EVERY_DAYS === (days.length - 1) % LABEL_EVERY_DAYS ? html`<text class="label" x="${percent(at + 0.5)}" y="${HEIGHT_PX - 6}" text-anchor="middle">${shortDay(day)}</text>` : html``))}
</svg>
</div>
<ul class="legend" aria-label="Colours of the chart">
${series.map(({ name }, at) => html`<li><svg width="12" height="12" aria-hidden="true" focusable="false"><rect class="series-${at}" width="12" height="12" rx="3"/></svg><span>${nameOf(name)}</span></li>`)}
</ul>
</figure>
`;
}

function axis(scale: ReturnType<typeof scaleOf>): Html {
  const decimals = decimalsOf(scale.step);
  const labels = ticksOf(scale).map((tick) => ({ tick, text: dollars(tick, decimals) }));
  const width = Math.max(...labels.map(({ text }) => text.length)) * DIGIT_PX + 10;
  return html`<svg class="axis" width="${width}" height="${HEIGHT_PX}" aria-hidden="true" focusable="false">${labels.map(
    ({ tick, text }) =>
      html`<text class="label" x="${width - 8}" y="${heightAt(tick, scale.top) + 4}" text-anchor="end">${text}</text>`,
  )}</svg>`;
}

function ticksOf({ step, top }: ReturnType<typeof scaleOf>): bigint[] {
  return Array.from({ length: Number(top / step) + 1 }, (_, at) => step * BigInt(at));
}

/** Decimal places that tell neighbouring ticks apart. */
function decimalsOf(step: bigint): number {
  if (step >= 1_000_000_000n) return 0;
  return Math.max(2, step.toString().padStart(9, "0").replace(/0+$/, "").length);
}

function bars(day: number, rows: readonly UsageRow[], at: number, series: readonly Series[], top: bigint): Html {
  if (rows.length === 0) return html``;
  let below = 0n;
  const parts = series.map(({ items }, number) => {
    const { cost } = totalOf(rows.filter(({ item }) => items.has(item)));
    const foot = heightAt(below, top);
    below += cost;
    const head = heightAt(below, top);
    if (cost <= 0n) return html``;
    return html`<rect class="series-${number}" x="${percent(at + (1 - BAR_SHARE) / 2)}" width="${percent(BAR_SHARE)}" y="${head}" height="${hundredths(foot - head)}"/>`;
  });
  const lines = byModel(rows).map(({ item, cost }) => {
    const its = rows.filter((row) => row.item === item);
    return `${item}: ${moneyText(cost)}, ${countsText(its)}`;
  });
  return html`<g class="day"><title>${[`${dayText(day)}: ${moneyText(below)}`, ...lines].join("\n")}</title><rect class="hit" x="${percent(at)}" width="${percent(1)}" y="${ABOVE_PX}" height="${PLOT_PX}"/>${parts}</g>
`;
}

/** Pixels from the top. */
function heightAt(cost: bigint, top: bigint): number {
  return hundredths(ABOVE_PX + PLOT_PX * (1 - Number(cost) / Number(top)));
}

function percent(days: number): string {
  return `${hundredths((100 * days) / DAYS)}%`;
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
