/** The page about robot runs: `robot-runs.md` with its limits and its table of errors. */
import { prose } from "../../http/document/markdown.ts";
import { documentPage } from "../../http/document/shell.ts";
import { EVERY, KEY_ROWS } from "../../std/every-route.ts";
import type { Row } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { RUNS } from "../errors.ts";
import text from "./robot-runs.md" with { type: "text" };

export function robotRunsPage(): string {
  return documentPage("Robot runs", text, { errors: errorsTable() });
}

/** The errors of run storage, then those of every route. */
function errorsTable(): Html {
  return html`<table>
<thead><tr><th>Code</th><th>Status</th><th>When, and what to do</th></tr></thead>
<tbody>
${Object.values(RUNS).map(errorRow)}
<tr class="group"><th colspan="3" scope="rowgroup">Of every route with a key</th></tr>
${[...KEY_ROWS, EVERY.internal_error].map(errorRow)}</tbody>
</table>
`;
}

function errorRow({ wire, status, statuses, http = "" }: Row): Html {
  return html`<tr><td><code>${wire}</code></td><td>${statuses ?? status}</td><td>${prose(http)}</td></tr>
`;
}
