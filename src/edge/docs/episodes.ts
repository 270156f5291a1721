/** The page about episodes on a socket: `episodes.md`, with its picture, its tables and the two clients put in. */
import { EVERY } from "../../error/every-route.ts";
import { ROBOT } from "../../error/robot.ts";
import { present } from "../../std/assert.ts";
import { Html, html } from "../../web/markup.ts";
import python from "./clients/episode.py" with { type: "text" };
// Imported as text, though the compiler sees a module.
import * as typescript from "./clients/episode.ts" with { type: "text" };
import limits from "./episode-limits.md" with { type: "text" };
import { EPISODE_LIMITS } from "./episode-limits.ts";
import { sequencePicture } from "./episode-sequence.ts";
import text from "./episodes.md" with { type: "text" };
import { markdown } from "./markdown.ts";
import { shell } from "./shell.ts";
import { errorsTable } from "./socket-errors.ts";

export function episodesPage(): string {
  const { content, headings } = markdown(filled(text), {
    sequence: sequencePicture(),
    limits: limitsTable(),
    errors: errorsTable(ROBOT, EVERY),
    python: source(python),
    typescript: source((typescript as unknown as { readonly default: string }).default),
  });
  return shell({
    title: "Episodes on a WebSocket · tendon API",
    nav: html`<p class="brand"><a href="../docs">tendon API</a></p>
<ul>${headings.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul>`,
    main: content,
  });
}

function limitsTable(): Html {
  const { content } = markdown(filled(limits), {});
  return new Html(content.text.replace("<table>", '<table class="limits">'));
}

/** The text with the limits that it refers to. */
function filled(text: string): string {
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => present(EPISODE_LIMITS[name], `the limit {{${name}}}`));
}

function source(text: string): Html {
  return html`<pre>${text.trimEnd()}</pre>
`;
}
