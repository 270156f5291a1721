/** The failures of a product as a table for people: its own, then those of every route with a key. */
import type { Row } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { prose } from "./markdown.ts";

export function failuresTable(own: readonly Row[], every: readonly Row[]): Html {
  return html`<table>
<thead><tr><th>Code</th><th>Status</th><th>When, and what to do</th></tr></thead>
<tbody>
${own.map(failureRow)}
<tr class="group"><th colspan="3" scope="rowgroup">Of every route with a key</th></tr>
${every.map(failureRow)}</tbody>
</table>
`;
}

/** A failure that is never an answer comes inside one: in a response object or an event. */
function failureRow({ wire, status, statuses, http, event = "" }: Row): Html {
  const where = http === undefined ? "inside 200" : (statuses ?? String(status)).toLowerCase();
  return html`<tr><td><code>${wire}</code></td><td>${where}</td><td>${prose(http ?? event)}</td></tr>
`;
}
