/** `/account/runs`: the stored bytes against the quota, and the account's runs, newest first. */

import type { RunName } from "../../std/run-names.ts";
import { field, hidden } from "../../web/field.ts";
import { layout, section, type Viewer } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";
import type { CompletedRun } from "../store/records.ts";
import { listAddress, RUNS_ADDRESS, runAddress, sizeText } from "./address.ts";

type RunRow = Omit<CompletedRun, "id">;

interface Usage {
  readonly stored: number;
  readonly reserved: number;
  readonly quota: number;
}

export interface RunsPage {
  readonly viewer: Viewer;
  readonly notice?: string | undefined;
  readonly problem?: string | undefined;
  /** Bytes; undefined if they could not be read. */
  readonly usage: Usage | undefined;
  readonly runs: readonly RunRow[];
  /** The robot whose runs are listed; empty for all. */
  readonly robot: string;
  readonly later: boolean;
  readonly next: string | undefined;
}

export function runsPage(data: RunsPage): string {
  const { viewer, notice, problem, usage } = data;
  return layout({
    heading: "Runs",
    lead: html`<p>Recordings that your robots have uploaded.</p>`,
    viewer,
    here: RUNS_ADDRESS,
    width: "sections",
    notice,
    problem,
    content: html`${usage === undefined ? undefined : usageSection(usage)}
${listSection(data)}`,
  });
}

function usageSection(usage: Usage): Html {
  const { stored, reserved, quota } = usage;
  const more = html` <span class="soft more">${sizeText(reserved)} more are reserved for uploads that are not finished.</span>`;
  return section(
    "storage",
    "Storage",
    html`<p class="figure"><span class="large">${sizeText(stored)}</span> of ${sizeText(quota)}${reserved > 0 ? more : undefined}</p>
${bar(usage)}`,
  );
}

/** Hidden from screen readers, because the text above it says the same. */
function bar({ stored, reserved, quota }: Usage): Html {
  const share = (bytes: number) => (quota <= 0 ? 100 : Math.min(100, Math.round((bytes / quota) * 1000) / 10));
  const width = (bytes: number, kind: string) =>
    bytes <= 0 ? undefined : html`<rect class="${kind}" width="${Math.max(0.5, share(bytes))}%" height="8" rx="4"/>`;
  return html`<svg class="progress" width="100%" height="8" aria-hidden="true" focusable="false"><rect class="track" width="100%" height="8" rx="4"/>${
    reserved > 0 ? width(stored + reserved, "reserved") : undefined
  }${width(stored, stored >= quota ? "full" : "part")}</svg>`;
}

function listSection({ viewer, runs, robot, later, next }: RunsPage): Html {
  const none =
    robot === ""
      ? html`<p>There are no runs yet. A robot’s recording is uploaded with <code>tendon runs push</code>.</p>`
      : html`<p>There are no runs of this robot.</p>`;
  const pages = [
    ...(later ? [html`<a href="${listAddress({ robot })}">Newest runs</a>`] : []),
    ...(next === undefined ? [] : [html`<a href="${listAddress({ robot, after: next })}">Older runs</a>`]),
  ];
  return section(
    "runs",
    robot === "" ? "All runs" : `Runs of ${robot}`,
    html`<form class="line filter" method="get" action="${RUNS_ADDRESS}">
${field({
  name: "robot",
  label: "Robot",
  value: robot,
  required: false,
  attributes: { autocomplete: "off", spellcheck: "false", maxlength: 128, placeholder: "all robots" },
})}
<button class="second" type="submit">Show</button>
</form>
${runs.length === 0 ? none : table(viewer, runs)}
${pages.length === 0 ? undefined : html`<p class="pages">${pages}</p>`}`,
  );
}

function table(viewer: Viewer, runs: readonly RunRow[]): Html {
  return html`<table class="cards runs" role="table">
<caption>Completed runs, newest first; times are UTC</caption>
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">Run</th>
<th role="columnheader" scope="col">Robot</th>
<th role="columnheader" scope="col">Completed</th>
<th role="columnheader" scope="col" class="number">Files</th>
<th role="columnheader" scope="col" class="number">Size</th>
<th role="columnheader" scope="col">Delete</th>
</tr></thead>
<tbody role="rowgroup">
${runs.map((run) => tableRow(viewer, run))}</tbody>
</table>
`;
}

function tableRow(viewer: Viewer, one: RunRow): Html {
  const { robot, run, size, files, completedAt } = one;
  return html`<tr role="row">
<th role="rowheader" scope="row" class="called"><a href="${runAddress(one)}"><bdi>${run}</bdi></a></th>
<td role="cell"><span class="what" aria-hidden="true">Robot</span><a href="${listAddress({ robot })}"><bdi>${robot}</bdi></a></td>
<td role="cell"><span class="what" aria-hidden="true">Completed</span>${moment(completedAt)}</td>
<td role="cell" class="number"><span class="what" aria-hidden="true">Files</span>${files}</td>
<td role="cell" class="number"><span class="what" aria-hidden="true">Size</span>${sizeText(size)}</td>
<td role="cell" class="end">${deleting(viewer, one)}</td>
</tr>
`;
}

/** A deletion cannot be undone, so its button appears only after a first click. */
export function deleting({ csrf }: Viewer, { robot, run }: RunName): Html {
  const which = html`<span class="unseen"> run ${run} of ${robot}</span>`;
  return html`<details class="revoke">
<summary>Delete${which}</summary>
<form method="post" action="${RUNS_ADDRESS}/delete">
${hidden("csrf", csrf)}
${hidden("robot", robot)}
${hidden("run", run)}
<p>All files of this run are deleted. Nobody can bring them back.</p>
<button class="danger" type="submit">Delete for good${which}</button>
</form>
</details>`;
}
