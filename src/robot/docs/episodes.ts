/** The page about episodes on a socket: `episodes.md`, with its limits, its errors and the two clients put in. */
import { prose } from "../../http/document/markdown.ts";
import { documentPage } from "../../http/document/shell.ts";
import { LIMITS } from "../../limits.ts";
import { EVERY } from "../../std/every-route.ts";
import type { Row, Table } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { ROBOT } from "../errors.ts";
import python from "./clients/episode.py" with { type: "text" };
// Imported as text, though the compiler sees a module.
import * as typescript from "./clients/episode.ts" with { type: "text" };
import text from "./episodes.md" with { type: "text" };

export function episodesPage(): string {
  return documentPage("Episodes on a WebSocket", text, EPISODE_LIMITS, {
    errors: errorsTable(ROBOT, EVERY),
    python: source(python),
    typescript: source((typescript as unknown as { readonly default: string }).default),
  });
}

const whole = (value: number) => value.toLocaleString("en-US");
const mebibytes = (bytes: number) => `${whole(bytes / 2 ** 20)} MiB`;
const seconds = (ms: number) => `${whole(ms / 1000)} s`;

/** The bounds of an episode on a socket. */
const EPISODE_LIMITS: Readonly<Record<string, string>> = {
  textChars: whole(LIMITS.socketTextCharsMax),
  payload: mebibytes(LIMITS.socketPayloadBytesMax),
  jpegBytes: whole(LIMITS.jpegBytesMax),
  jpegEdge: whole(LIMITS.jpegEdgePxMax),
  observations: whole(LIMITS.socketObservationsMax),
  pendingBytes: mebibytes(LIMITS.socketPendingBytesMax),
  pendingMessages: whole(LIMITS.socketPendingMessagesMax),
  unsent: mebibytes(LIMITS.socketUnsentBytesMax),
  message: `${LIMITS.socketMessageMs / 1000} s`,
  silence: `${LIMITS.socketSilentSeconds} s`,
  answer: seconds(LIMITS.socketAnswerMs),
  idle: seconds(LIMITS.sessionIdleMs),
  chunk: `${LIMITS.chunkSecondsDefault} s`,
  deadline: `${LIMITS.deadlineMs.min} to ${whole(LIMITS.deadlineMs.max)}`,
  horizon: `1 to the model's rows, at most ${LIMITS.actionHorizonMax}`,
  steps: `1 to ${LIMITS.inferenceStepsMax}`,
  sessionId: whole(LIMITS.sessionIdCharsMax),
  observationId: whole(LIMITS.observationIdCharsMax),
  json: `${LIMITS.jsonDepthMax} and ${whole(LIMITS.jsonValuesMax)}`,
  sockets: `${whole(LIMITS.accountSocketsMax)} and ${whole(LIMITS.socketsMax)}`,
  shutdown: seconds(LIMITS.drainMs),
  ended: `${LIMITS.sessionEndedMs / 3_600_000} hours`,
};

function source(text: string): Html {
  return html`<pre>${text.trimEnd()}</pre>
`;
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
