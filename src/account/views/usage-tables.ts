/** The numbers of the usage chart as tables, robot models and language models each in their own units. */
import { type Html, html } from "../../web/markup.ts";
import { grouped, money } from "../../web/money.ts";
import { type Amounts, byModel, type ModelKind, totalOf, type UsageRow } from "./usage.ts";

/** In the words of each kind. */
interface Words {
  readonly models: string;
  readonly run: string;
  readonly runs: string;
  readonly out: string;
}

const WORDS: Readonly<Record<ModelKind, Words>> = {
  robot: { models: "Robot models", run: "chunk", runs: "chunks", out: "Rows" },
  language: { models: "Language models", run: "response", runs: "responses", out: "Tokens out" },
};
const KINDS = ["robot", "language"] as const;

/** `3 chunks and 1 response` */
export function countsText(rows: readonly UsageRow[]): string {
  const counts = KINDS.flatMap((kind) => {
    const its = rows.filter((row) => row.kind === kind);
    if (its.length === 0) return [];
    const { runs } = totalOf(its);
    return [`${grouped(runs)} ${runs === 1 ? WORDS[kind].run : WORDS[kind].runs}`];
  });
  return counts.join(" and ");
}

/** Per kind that was used: a table by model. Then one by day, folded. */
export function usageTables(rows: readonly UsageRow[], days: number): Html {
  return html`${KINDS.map((kind) => modelTable(kind, rows, days))}${dayTables(rows)}`;
}

function modelTable(kind: ModelKind, rows: readonly UsageRow[], days: number): Html {
  const its = rows.filter((row) => row.kind === kind);
  if (its.length === 0) return html``;
  const { models } = WORDS[kind];
  const used = byModel(its);
  return html`<table class="cards usage" role="table">
<caption><strong>${models}</strong>, last ${days} days</caption>
${head(kind)}
<tbody role="rowgroup">
${used.map((one) => row(kind, nameOf(one.model), one))}</tbody>
${used.length === 1 ? undefined : html`<tfoot role="rowgroup">${row(kind, html`All of them`, totalOf(its))}</tfoot>`}
</table>
`;
}

function dayTables(rows: readonly UsageRow[]): Html {
  return html`<details>
<summary>The chart as tables</summary>
${KINDS.map((kind) =>
  dayTable(
    kind,
    rows.filter((row) => row.kind === kind),
  ),
)}</details>
`;
}

function dayTable(kind: ModelKind, rows: readonly UsageRow[]): Html {
  if (rows.length === 0) return html``;
  const days = [...Map.groupBy(rows, ({ day }) => day)].sort(([a], [b]) => (a < b ? 1 : -1));
  return html`<table class="cards usage" role="table">
<caption><strong>${WORDS[kind].models}</strong> by day (UTC), latest first</caption>
${head(kind)}
${days.map(
  ([day, its]) => html`<tbody role="rowgroup">
<tr class="group" role="row"><th role="rowheader" scope="rowgroup" colspan="6"><time datetime="${day}">${day}</time></th></tr>
${byModel(its).map((one) => row(kind, nameOf(one.model), one))}</tbody>
`,
)}</table>
`;
}

function head(kind: ModelKind): Html {
  const names = columns(kind).map(({ name }) => html`<th class="number" role="columnheader" scope="col">${name}</th>`);
  return html`<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Model</th>${names}</tr></thead>`;
}

function row(kind: ModelKind, name: Html, amounts: Amounts): Html {
  const cells = columns(kind).map(
    ({ name, value }) =>
      html`<td class="number" role="cell"><span class="what" aria-hidden="true">${name}</span>${value(amounts)}</td>`,
  );
  return html`<tr role="row"><th role="rowheader" scope="row">${name}</th>${cells}</tr>\n`;
}

function columns(kind: ModelKind): { readonly name: string; readonly value: (amounts: Amounts) => Html }[] {
  const { runs, out } = WORDS[kind];
  const count = (name: string, of: (amounts: Amounts) => number) => ({
    name,
    value: (amounts: Amounts) => html`${grouped(of(amounts))}`,
  });
  return [
    count(runs.charAt(0).toUpperCase() + runs.slice(1), (amounts) => amounts.runs),
    count("Tokens in", (amounts) => amounts.tokensIn),
    count("Of these cached", (amounts) => amounts.tokensCached),
    count(out, (amounts) => amounts.out),
    { name: "Cost", value: ({ cost }) => money(cost) },
  ];
}

/** A model's id, which may break after its slash. */
export function nameOf(model: string): Html {
  const parts = model.split(/(?<=\/)/);
  return html`${parts.map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`;
}
