/** The table of errors of a page: the errors of its routes, then those of every route with a key. */
import { EVERY, KEY_ROWS } from "../../std/every-route.ts";
import type { Row, Table } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { prose } from "./markdown.ts";

/** `further` has rows that the routes share with others, beside those of keys. */
export function errorsTable(own: Table, further: readonly Row[] = []): Html {
  const told = Object.values(own).filter(({ http, event }) => http !== undefined || event !== undefined);
  return html`<table>
<thead><tr><th>Code</th><th>Status</th><th>When, and what to do</th></tr></thead>
<tbody>
${told.map(errorRow)}
<tr class="group"><th colspan="3" scope="rowgroup">Every route with a key</th></tr>
${[...KEY_ROWS, ...further, EVERY.internal_error].filter(({ http }) => http !== undefined).map(errorRow)}</tbody>
</table>
`;
}

/** A failure that is never an answer comes inside one: in a response object or an event. */
function errorRow({ wire, status, statuses, http, event = "" }: Row): Html {
  const where = http === undefined ? "inside 200" : (statuses ?? String(status)).toLowerCase();
  return html`<tr><td><code>${wire}</code></td><td>${where}</td><td>${prose(http ?? event)}</td></tr>
`;
}
