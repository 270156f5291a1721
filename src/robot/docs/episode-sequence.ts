/** The picture of an episode: who says what to whom, from the handshake to the end. Drawn for a phone's width. */
import { type Html, html } from "../../web/markup.ts";

const WIDTH = 360;
const ROBOT = 8;
const SERVICE = WIDTH - ROBOT;
const MIDDLE = WIDTH / 2;
const TOP = 34;

interface Message {
  readonly from: "robot" | "service";
  readonly says: string;
  readonly with: string;
}

/** What one of them does meanwhile. */
interface Work {
  readonly does: "robot" | "service";
  readonly what: string;
}

const ROWS: readonly (Message | Work)[] = [
  { from: "robot", says: "session.open", with: "model, instruction" },
  { from: "service", says: "session.opened", with: "step 0, 1 frame per camera" },
  { from: "robot", says: "00 + JPEG", with: "camera 0" },
  { from: "robot", says: "01 + JPEG", with: "camera 1" },
  { from: "robot", says: "02 + JPEG", with: "camera 2" },
  { does: "service", what: "decodes each frame as it arrives" },
  { from: "robot", says: "observation", with: "robot_state" },
  { does: "service", what: "runs the model" },
  { from: "service", says: "action_chunk", with: "step 0" },
  { does: "robot", what: "moves along the rows" },
  { from: "robot", says: "frames, observation", with: "for step 1" },
  { from: "robot", says: "frames, observation", with: "for step 2, waits" },
  { from: "service", says: "action_chunk", with: "step 1" },
  { from: "service", says: "action_chunk", with: "step 2" },
  { from: "robot", says: "session.close", with: "" },
  { from: "service", says: "session.closed", with: "then close 1000" },
];

const ROW_HEIGHTS = { says: 34, does: 40 } as const;

export function sequencePicture(): Html {
  let y = TOP;
  const drawn = ROWS.map((row) => {
    const from = y;
    y += "does" in row ? ROW_HEIGHTS.does : ROW_HEIGHTS.says;
    return "does" in row ? activity(row, from) : message(row, y);
  });
  const height = y + 16;
  return html`<figure class="sequence">
<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="sequence-title sequence-text">
<title id="sequence-title">An episode on one WebSocket</title>
<desc id="sequence-text">${inWords()}</desc>
<text class="who" x="0" y="14">robot</text>
<text class="who" x="${WIDTH}" y="14" text-anchor="end">tendon</text>
<path class="life" d="M${ROBOT} 24V${height}M${SERVICE} 24V${height}"/>
${drawn}</svg>
</figure>
`;
}

function message({ from, says, with: fields }: Message, y: number): Html {
  const [start, end, back] = from === "robot" ? [ROBOT, SERVICE, -7] : [SERVICE, ROBOT, 7];
  return html`<g class="${from}"><text x="${MIDDLE}" y="${y - 7}" text-anchor="middle"><tspan class="says">${says}</tspan>${fields === "" ? "" : html` <tspan class="fields">${fields}</tspan>`}</text><path class="arrow" d="M${start} ${y}H${end}"/><path class="tip" d="M${end} ${y}l${back} -4v8z"/></g>
`;
}

function activity({ does, what }: Work, y: number): Html {
  const robot = does === "robot";
  const x = robot ? ROBOT : SERVICE;
  const anchor = robot ? "start" : "end";
  return html`<rect class="work" x="${x - 4}" y="${y + 8}" width="8" height="${ROW_HEIGHTS.does - 12}" rx="2"/><text class="fields" x="${x + (robot ? 12 : -12)}" y="${y + ROW_HEIGHTS.does / 2 + 6}" text-anchor="${anchor}">${what}</text>
`;
}

function inWords(): string {
  const sentences = ROWS.map((row) =>
    "does" in row
      ? `${row.does === "robot" ? "The robot" : "tendon"} ${row.what}.`
      : `${row.from === "robot" ? "Robot to tendon" : "tendon to robot"}: ${[row.says, row.with].filter(Boolean).join(", ")}.`,
  );
  return sentences.join(" ");
}
