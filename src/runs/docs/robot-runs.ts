/** The page about robot runs: `robot-runs.md` with its limits and its table of errors. */
import { prose } from "../../http/document/markdown.ts";
import { documentPage } from "../../http/document/shell.ts";
import { LIMITS } from "../../limits.ts";
import { EVERY, KEY_ROWS } from "../../std/every-route.ts";
import type { Row } from "../../std/failure.ts";
import { type Html, html } from "../../web/markup.ts";
import { RUNS } from "../errors.ts";
import text from "./robot-runs.md" with { type: "text" };

export function robotRunsPage(): string {
  return documentPage("Robot runs", text, VALUES, { errors: errorsTable() });
}

const whole = (value: number) => value.toLocaleString("en-US");
const mebibytes = (bytes: number) => `${whole(bytes / 2 ** 20)} MiB`;
const gibibytes = (bytes: number) => `${whole(bytes / 2 ** 30)} GiB`;

/** The values that the text refers to as `{{name}}`. */
const VALUES: Readonly<Record<string, string>> = {
  pathBytes: whole(LIMITS.runPathBytesMax),
  pathSegments: whole(LIMITS.runPathSegmentsMax),
  file: mebibytes(LIMITS.runFileBytesMax),
  part: mebibytes(LIMITS.runPartBytes),
  json: mebibytes(LIMITS.runJsonBytesMax),
  runBytes: gibibytes(LIMITS.runBytesMax),
  runFiles: whole(LIMITS.runFilesMax),
  uploads: whole(LIMITS.runUploadsMax),
  account: gibibytes(LIMITS.runsAccountBytesMax),
  bodies: permitsText(LIMITS.runBodies),
  requests: permitsText(LIMITS.runRequests),
  trickle: `${LIMITS.runIdleBytesMin / 1024} KiB`,
  idle: `${LIMITS.runIdleMs / 1000} s`,
  body: `${LIMITS.runBodyMs / 3_600_000} hours`,
  upload: `${LIMITS.runUploadSeconds / 86_400} days`,
  listed: whole(LIMITS.runsListedMax),
  gone: `${LIMITS.runGoneSeconds} s`,
  left: `${LIMITS.runLeftSeconds / 3600} hours`,
};

function permitsText({ runMax, accountMax, max }: typeof LIMITS.runBodies | typeof LIMITS.runRequests): string {
  return `${runMax}, ${accountMax}, ${max}`;
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
