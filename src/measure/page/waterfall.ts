/** One request as a waterfall: a bar for each part of its way, each beginning where the one before it ended. */
import { type Html, html } from "../../web/markup.ts";
import { TONES } from "./style.ts";

export interface Request {
  /** Such as `median request`. */
  readonly name: string;
  readonly totalMs: number;
  /** In their order; together they are the total. */
  readonly parts: readonly { readonly name: string; readonly ms: number }[];
}

// Pixels of the drawing, which is scaled to the width of the page.
const WIDTH = 920;
const LABELS = 190;
const VALUES = 80;
const ROW = 22;
const BAR = 14;
const HEAD = 26;

/** Requests below each other on one scale of time, so that what grew can be seen. */
export function waterfallFigure(caption: string, requests: readonly Request[]): Html {
  const spanMs = Math.max(...requests.map(({ totalMs }) => totalMs));
  const height = requests.reduce((sum, { parts }) => sum + HEAD + parts.length * ROW + 12, 0);
  let top = 0;
  const drawn = requests.map((request) => {
    const one = requestRows(request, top, spanMs);
    top += HEAD + request.parts.length * ROW + 12;
    return one;
  });
  return html`<figure>
<figcaption>${caption}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${caption}">
${drawn}
</svg>
</figure>
`;
}

function requestRows({ name, totalMs, parts }: Request, top: number, spanMs: number): Html {
  let beganMs = 0;
  const rows = parts.map((part, at) => {
    // A part may come out a little below zero: it is a difference of two clocks.
    const widthMs = Math.max(0, part.ms);
    const x = LABELS + (beganMs / spanMs) * (WIDTH - LABELS - VALUES);
    const width = (widthMs / spanMs) * (WIDTH - LABELS - VALUES);
    const y = top + HEAD + at * ROW;
    beganMs += widthMs;
    return html`<text class="end" x="${LABELS - 10}" y="${y + 12}">${part.name}</text>
<path class="grid" d="M${LABELS} ${y + ROW - 3}H${WIDTH - VALUES}"/>
<rect class="fill-${at % TONES}" x="${x.toFixed(1)}" y="${y}" width="${Math.max(1, width).toFixed(1)}" height="${BAR}" rx="2"/>
<text x="${(x + Math.max(1, width) + 7).toFixed(1)}" y="${y + 12}">${part.ms.toFixed(2)} ms</text>`;
  });
  return html`<text class="name" x="0" y="${top + 14}">${name}: ${totalMs.toFixed(2)} ms</text>
${rows}`;
}
