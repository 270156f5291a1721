/**
 * `/account/runs/{robot}/{run}`: the player and the run's files. Without the script the videos still play, each by itself, and the
 * files can be downloaded. The script (src/runs/player) makes one player of them.
 */

import type { RunName } from "../../std/run-names.ts";
import { layout, section, type Viewer, WEB_POLICY } from "../../web/layout.ts";
import { type Html, html } from "../../web/markup.ts";
import { moment } from "../../web/time.ts";
import { fileAddress, RUNS_ADDRESS, runAddress, sizeText } from "./address.ts";
import { deleting } from "./list.ts";
import { playerBundle } from "./player-bundle.ts" with { type: "macro" };

export const PLAYER_SCRIPT: string = playerBundle();

/** The address changes with the script, because browsers keep it for ever. */
const HASH = new Bun.CryptoHasher("sha256").update(PLAYER_SCRIPT).digest("hex").slice(0, 16);
export const PLAYER_ADDRESS = `/assets/run-player-${HASH}.js`;

/** The part of a run's manifest that the page shows. */
export interface Manifest extends RunName {
  /** Unix seconds. */
  readonly completed_at: number;
  readonly size: number;
  readonly files: readonly RunFile[];
}

interface RunFile {
  readonly path: string;
  readonly size: number;
  readonly content_type: string;
}

/**
 * Only the player's page may run the script, and fetch from this service. The script has a nonce, because 'self' would allow every
 * file of a run as a script as well.
 */
export function playerPolicy(nonce: string): string {
  const media = ["img-src", "media-src", "connect-src"].map((kind) => `${kind} 'self'`);
  return [WEB_POLICY, `script-src 'nonce-${nonce}'`, ...media].join("; ");
}

const LOG_PATH = "episode.jsonl";
/** A page with more videos would open too many connections. */
const VIDEOS_MAX = 16;
/** A longer list of files is folded. */
const FILES_OPEN_MAX = 12;

export function runPage(viewer: Viewer, manifest: Manifest, nonce: string): string {
  const { robot, run, completed_at: completedAt, size } = manifest;
  return layout({
    heading: run,
    lead: html`<p><a href="${RUNS_ADDRESS}">Runs</a> of <bdi>${robot}</bdi> · completed ${moment(completedAt)} UTC · ${sizeText(size)}</p>
<p id="about"></p>`,
    viewer,
    here: RUNS_ADDRESS,
    width: "wide",
    script: { address: PLAYER_ADDRESS, nonce },
    content: html`${player(manifest)}
${filesSection(manifest)}
${section("delete", "Delete the run", deleting(viewer, manifest))}`,
  });
}

function player(manifest: Manifest): Html {
  const { files } = manifest;
  const log = files.find(({ path }) => path === LOG_PATH);
  const videos = files.filter(({ content_type: type }) => type.startsWith("video/")).slice(0, VIDEOS_MAX);
  const source = log && html` data-log="${fileAddress(manifest, log.path)}" data-log-size="${log.size}"`;
  const absent = `The run has no ${LOG_PATH}: there is nothing to show of state and action.`;
  return html`<div class="player" id="player" data-files="${runAddress(manifest)}/files/"${source}>
<section class="panel" aria-labelledby="cameras-heading">
<h2 id="cameras-heading">Cameras</h2>
<div class="cameras" id="cameras">
${videos.map((file) => camera(manifest, file))}</div>
<noscript><p class="warning">The player needs JavaScript. Without it the videos play one by one, and the files below can be downloaded.</p></noscript>
<p class="warning" id="log-problem" role="status"${log === undefined ? undefined : html` hidden`}>${log === undefined ? absent : undefined}</p>
</section>
${TRANSPORT}
${ROW}
${TRACES}
</div>
`;
}

function camera(name: RunName, { path, size }: RunFile): Html {
  return html`<figure class="camera" data-path="${path}">
<video src="${fileAddress(name, path)}" data-size="${size}" preload="metadata" muted playsinline controls aria-label="${path}"></video>
<figcaption>${path}</figcaption>
</figure>
`;
}

const TRANSPORT = html`<div class="panel transport" id="transport" role="group" aria-label="Playing" hidden>
<input class="scrubber" id="scrubber" type="range" min="0" max="0" step="any" value="0" aria-label="Time in the run">
<div class="buttons">
<button class="second" id="play" type="button">Play</button>
<button class="second" id="frame-back" type="button" aria-label="One frame back">‹</button>
<button class="second" id="frame-on" type="button" aria-label="One frame on">›</button>
<span class="clock"><span id="clock"></span><span class="whole"> / <span id="whole"></span></span></span>
<span class="pair-up"><label class="pick" for="speed">Speed</label>
<select id="speed" aria-label="Speed">
<option value="0.1">0.1×</option>
<option value="0.25">0.25×</option>
<option value="0.5">0.5×</option>
<option value="1" selected>1×</option>
<option value="2">2×</option>
<option value="4">4×</option>
</select></span>
</div>
<p class="hint"><kbd>Space</kbd> plays and pauses, <kbd>←</kbd> <kbd>→</kbd> move by a frame, with <kbd>Shift</kbd> by a second, <kbd>Home</kbd> and <kbd>End</kbd> to the ends.</p>
</div>`;

const ROW = html`<section class="panel" id="row-section" aria-labelledby="row-heading" hidden>
<h2 id="row-heading">Observation under the cursor</h2>
<dl class="readout" id="readout"></dl>
</section>`;

const TRACES = html`<section class="panel" id="trace-section" aria-labelledby="trace-heading" hidden>
<div class="trace-head">
<h2 id="trace-heading">State and action</h2>
<div>
<label class="pick" for="window">Window</label>
<select id="window">
<option value="all" selected>the whole run</option>
<option value="60">60 seconds</option>
<option value="10">10 seconds</option>
<option value="2">2 seconds</option>
</select>
</div>
</div>
<p class="soft" id="sampled" role="status" hidden></p>
<table class="traces">
<caption><span class="swatch"><svg width="28" height="10" aria-hidden="true" focusable="false"><path class="trace-state" d="M1 5H27"/></svg> state</span> <span class="swatch"><svg width="28" height="10" aria-hidden="true" focusable="false"><path class="trace-action" d="M1 5H27"/></svg> action rows that were due</span> <span id="span"></span></caption>
<thead><tr><th scope="col">Joint</th><th scope="col" class="number">State</th><th scope="col" class="number">Action</th><th scope="col">Trace</th></tr></thead>
<tbody id="joints"></tbody>
</table>
</section>`;

function filesSection(manifest: Manifest): Html {
  const { files } = manifest;
  const list = html`<table class="cards files" role="table">
<caption>Files of the run</caption>
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">Path</th>
<th role="columnheader" scope="col">Type</th>
<th role="columnheader" scope="col" class="number">Size</th>
</tr></thead>
<tbody role="rowgroup">
${files.map((file) => fileRow(manifest, file))}</tbody>
</table>
<p><a href="${runAddress(manifest)}/manifest.json">manifest.json</a> <span class="soft">lists them with their SHA-256.</span></p>`;
  const count = files.length === 1 ? "1 file" : `${files.length} files`;
  return section(
    "files",
    "Files",
    files.length <= FILES_OPEN_MAX ? list : html`<details><summary>${count}</summary>${list}</details>`,
  );
}

function fileRow(name: RunName, { path, size, content_type: type }: RunFile): Html {
  return html`<tr role="row">
<th role="rowheader" scope="row" class="path"><a href="${fileAddress(name, path)}" download><bdi>${path}</bdi></a></th>
<td role="cell" class="soft">${type}</td>
<td role="cell" class="number">${sizeText(size)}</td>
</tr>
`;
}
