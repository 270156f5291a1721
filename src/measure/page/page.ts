/**
 * The page of a report: one file that needs nothing beside it, no scripts. It begins with the question, says where the figures come
 * from, shows them as tables and pictures, and ends with what they mean and what lies outside of the window.
 */
import type { Align } from "../../std/text-table.ts";
import { Html, html } from "../../web/markup.ts";
import { type Origin, versionsText } from "../origin.ts";
import { STYLE } from "./style.ts";

export interface Section {
  readonly heading: string;
  /** A sentence below the heading that says how to read it. */
  readonly note?: string;
  readonly content: readonly Html[];
}

interface Page {
  readonly suite: string;
  /** The one question that the suite answers. */
  readonly question: string;
  readonly from: Origin;
  readonly sections: readonly Section[];
  readonly meaning: readonly string[];
}

export function reportPage({ suite, question, from, sections, meaning }: Page): string {
  const { machine } = from;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tendon bench ${suite} · ${from.date.slice(0, 10)}</title>
${new Html(`<style>${STYLE}</style>`)}
</head>
<body>
<main>
<h1>tendon bench ${suite}</h1>
<p class="lead">${question}</p>
<dl class="facts">
<dt>machine</dt><dd>${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB, GPU ${machine.gpu}; ${machine.placement}</dd>
<dt>measured</dt><dd>${from.date.replace("T", " ").replace("Z", " UTC")}, commit ${from.commit}</dd>
<dt>versions</dt><dd>${versionsText(from)}</dd>
</dl>
${sections.map(sectionOf)}
<section>
<h2>What the figures mean</h2>
<ul class="meaning">${sentences(meaning).map(sentenceItem)}</ul>
</section>
</main>
</body>
</html>
`.text;
}

function sectionOf({ heading, note, content }: Section): Html {
  return html`<section>
<h2>${heading}</h2>
${note === undefined ? undefined : html`<p class="soft">${note}</p>`}
${content}
</section>
`;
}

/** The lines of a terminal as sentences. */
function sentences(lines: readonly string[]): string[] {
  return lines.join(" ").split(/(?<=\.) /);
}

/** `Latency: from handing …` defines a word of the tables, which is then easier to find. */
function sentenceItem(sentence: string): Html {
  const [, word, rest] = /^([^:.]{1,40}):(.*)$/.exec(sentence) ?? [];
  return word === undefined ? html`<li>${sentence}</li>` : html`<li><strong>${word}:</strong>${rest}</li>`;
}

/** A table of texts; columns are aligned as in a terminal. */
export function tableOf(head: readonly string[], rows: readonly (readonly string[])[], align: readonly Align[]): Html {
  const left = new Html(' class="left"');
  const sideOf = (at: number): Html | undefined => (align[at] === "right" ? undefined : left);
  return html`<div class="scroll"><table>
<thead><tr>${head.map((text, at) => html`<th${sideOf(at)}>${text}</th>`)}</tr></thead>
<tbody>${rows.map((texts) => html`<tr>${texts.map((text, at) => html`<td${sideOf(at)}>${text}</td>`)}</tr>`)}</tbody>
</table></div>
`;
}
