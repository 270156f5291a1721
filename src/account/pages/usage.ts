/** Usage in numbers: sums by kind of model and by model, and tables of robot models and language models, each in their own units. */
import type { UsageDay } from "../../charge/store/records.ts";
import { dayText } from "../../std/calendar.ts";
import { type Html, html } from "../../web/markup.ts";
import { grouped, money } from "../../web/money.ts";

/** Robot models are counted in chunks and their rows, language models in responses and their tokens. */
const WORDS = {
  robot: { models: "Robot models", one: "chunk", several: "chunks", out: "Rows" },
  language: { models: "Language models", one: "response", several: "responses", out: "Tokens out" },
} as const;

type Words = (typeof WORDS)[keyof typeof WORDS];

export interface UsageRow extends UsageDay {
  readonly kind: keyof typeof WORDS;
}

type Amounts = Omit<UsageDay, "day" | "item">;

export function totalOf(rows: readonly Amounts[]): Amounts {
  const sum = (count: Exclude<keyof Amounts, "cost">) => rows.reduce((total, row) => total + row[count], 0);
  return {
    charges: sum("charges"),
    promptTokens: sum("promptTokens"),
    cachedTokens: sum("cachedTokens"),
    completionTokens: sum("completionTokens"),
    cost: rows.reduce((total, { cost }) => total + cost, 0n),
  };
}

/** The sums of each model, sorted by cost, highest first. */
export function byModel(rows: readonly UsageRow[]): (Amounts & { readonly item: string })[] {
  return [...Map.groupBy(rows, ({ item }) => item)]
    .map(([item, its]) => ({ item, ...totalOf(its) }))
    .sort((a, b) => (a.cost === b.cost ? (a.item < b.item ? -1 : 1) : a.cost > b.cost ? -1 : 1));
}

/** One colour of the chart. */
export interface Series {
  readonly name: string;
  readonly items: ReadonlySet<string>;
}

const SERIES_MAX = 6;

/** One series per model; with too many models the last series is the sum of the cheapest. */
export function seriesOf(rows: readonly UsageRow[]): Series[] {
  const items = byModel(rows).map(({ item }) => item);
  const alone = items.length <= SERIES_MAX ? items : items.slice(0, SERIES_MAX - 1);
  const rest = items.slice(alone.length);
  return [
    ...alone.map((item) => ({ name: item, items: new Set([item]) })),
    ...(rest.length === 0 ? [] : [{ name: `${rest.length} other models`, items: new Set(rest) }]),
  ];
}

/** The rows of each kind that was used. */
function kindsOf(rows: readonly UsageRow[]) {
  return (["robot", "language"] as const)
    .map((kind) => ({ words: WORDS[kind], its: rows.filter((row) => row.kind === kind) }))
    .filter(({ its }) => its.length > 0);
}

/** `3 chunks and 1 response` */
export function countsText(rows: readonly UsageRow[]): string {
  const counts = kindsOf(rows).map(({ words, its }) => {
    const { charges } = totalOf(its);
    return `${grouped(charges)} ${charges === 1 ? words.one : words.several}`;
  });
  return counts.join(" and ");
}

/** A table by model for each kind; then one by day, folded. */
export function usageTables(rows: readonly UsageRow[], days: number): Html {
  const kinds = kindsOf(rows);
  return html`${kinds.map(({ words, its }) => modelTable(words, its, days))}<details>
<summary>The chart as tables</summary>
${kinds.map(({ words, its }) => dayTable(words, its))}</details>
`;
}

function modelTable(words: Words, rows: readonly UsageRow[], days: number): Html {
  const used = byModel(rows);
  return html`<table class="cards usage" role="table">
<caption><strong>${words.models}</strong>, last ${days} days</caption>
${head(words)}
<tbody role="rowgroup">
${used.map((one) => row(words, nameOf(one.item), one))}</tbody>
${used.length === 1 ? undefined : html`<tfoot role="rowgroup">${row(words, html`All of them`, totalOf(rows))}</tfoot>`}
</table>
`;
}

function dayTable(words: Words, rows: readonly UsageRow[]): Html {
  const days = [...Map.groupBy(rows, ({ day }) => day)].sort(([a], [b]) => b - a);
  return html`<table class="cards usage" role="table">
<caption><strong>${words.models}</strong> by day (UTC), latest first</caption>
${head(words)}
${days.map(
  ([day, its]) => html`<tbody role="rowgroup">
<tr class="group" role="row"><th role="rowheader" scope="rowgroup" colspan="6"><time datetime="${dayText(day)}">${dayText(day)}</time></th></tr>
${byModel(its).map((one) => row(words, nameOf(one.item), one))}</tbody>
`,
)}</table>
`;
}

function head(words: Words): Html {
  const names = columns(words).map(([name]) => html`<th class="number" role="columnheader" scope="col">${name}</th>`);
  return html`<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Model</th>${names}</tr></thead>`;
}

function row(words: Words, name: Html, amounts: Amounts): Html {
  const cells = columns(words).map(
    ([column, value]) =>
      html`<td class="number" role="cell"><span class="what" aria-hidden="true">${column}</span>${value(amounts)}</td>`,
  );
  return html`<tr role="row"><th role="rowheader" scope="row">${name}</th>${cells}</tr>\n`;
}

function columns({ several, out }: Words): readonly (readonly [name: string, value: (of: Amounts) => Html | string])[] {
  return [
    [several.charAt(0).toUpperCase() + several.slice(1), (of) => grouped(of.charges)],
    ["Tokens in", (of) => grouped(of.promptTokens)],
    ["Of these cached", (of) => grouped(of.cachedTokens)],
    [out, (of) => grouped(of.completionTokens)],
    ["Cost", (of) => money(of.cost)],
  ];
}

/** A model's id, which may break after its slash. */
export function nameOf(model: string): Html {
  const parts = model.split(/(?<=\/)/);
  return html`${parts.map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`;
}
