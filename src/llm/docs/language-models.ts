/** The page about language models: `language-models.md` with its limits and its table of errors put in. */
import { prose } from "../../http/document/markdown.ts";
import { documentPage } from "../../http/document/shell.ts";
import { EVERY, KEY_ROWS, MONEY_ROWS } from "../../std/every-route.ts";
import type { Row, Table } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { LLM } from "../errors.ts";
import text from "./language-models.md" with { type: "text" };

export function languageModelsPage(): string {
  return documentPage("Language models", text, { errors: errorsTable() });
}

/** The errors of the language models, then those of every route. */
function errorsTable(): Html {
  const every: readonly Row[] = [...KEY_ROWS, ...MONEY_ROWS, EVERY.internal_error];
  return html`<table>
<thead><tr><th>Code</th><th>Status</th><th>When, and what to do</th></tr></thead>
<tbody>
${rowsOf(LLM).map(errorRow)}
<tr class="group"><th colspan="3" scope="rowgroup">Of every route with a key</th></tr>
${every.filter(({ http }) => http !== undefined).map(errorRow)}</tbody>
</table>
`;
}

function rowsOf(table: Table): Row[] {
  return Object.values(table).filter(({ http, event }) => http !== undefined || event !== undefined);
}

/** A failure that is never an answer comes inside one: in a response object or an event. */
function errorRow({ wire, status, statuses, http, event = "" }: Row): Html {
  const where = http === undefined ? "inside 200" : (statuses ?? String(status)).toLowerCase();
  return html`<tr><td><code>${wire}</code></td><td>${where}</td><td>${prose(http ?? event)}</td></tr>
`;
}
