/** The page about episodes on a socket: `episodes.md`, with its limits and its errors put in. */
import { prose } from "../../http/document/markdown.ts";
import { documentPage } from "../../http/document/shell.ts";
import { EVERY } from "../../std/every-route.ts";
import type { Row, Table } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { ROBOT } from "../errors.ts";
import text from "./episodes.md" with { type: "text" };

export function episodesPage(): string {
  return documentPage("Episodes on a WebSocket", text, { errors: errorsTable(ROBOT, EVERY) });
}

/** A group stands where its first row stands in the tables. */
function errorsTable(...tables: readonly Table[]): Html {
  const rows = tables.flatMap((rows) => Object.values(rows)).filter(({ socket }) => socket !== undefined);
  const groups = [...Map.groupBy(rows, ({ socket }) => socket?.[0])].map(
    ([title, group]) => html`<tbody>
<tr class="group"><th colspan="4" scope="rowgroup">${title}</th></tr>
${group.map(errorRow)}</tbody>
`,
  );
  return html`<table class="errors">
<thead><tr><th>Code</th><th>closing</th><th>Close code</th><th>When, and what to do</th></tr></thead>
${groups}</table>
`;
}

function errorRow(row: Row): Html {
  const { close, socket, http = "" } = row;
  const closes =
    close === undefined ? html`<td class="none">–</td>` : html`<td><span class="what">close </span>${close}</td>`;
  return html`<tr><td><code>${row.wire}</code></td><td><span class="what">closing </span>${String(close !== undefined)}</td>${closes}<td>${prose(socket?.[1] ?? http)}</td></tr>
`;
}
