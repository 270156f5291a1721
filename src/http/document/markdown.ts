/**
 * Markdown of this repository as HTML, by `marked`: CommonMark with tables, which escapes what is text. HTML in the Markdown
 * is refused, except for a comment with the name of a part: the part takes its place.
 */
import { Marked } from "marked";
import { present } from "../../std/assert.ts";
import { Html } from "../../web/markup.ts";

/** The text with its `parts`, and its headings of the second level in their order. */
export function markdown(text: string, parts: Readonly<Record<string, Html>>) {
  const headings: { id: string; text: string }[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = slug(text);
        if (depth === 2) headings.push({ id, text });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      html({ text }) {
        const name = /^<!-- (\w+) -->$/.exec(text.trim())?.[1] ?? "";
        return present(parts[name], `the part of the page that "${text.trim()}" names`).text;
      },
    },
  });
  return { content: new Html(marked.parse(text, { async: false })), headings };
}

/** A description: paragraphs, lists, code and bold. */
export function prose(text: string): Html {
  return new Html(markdown(text, {}).content.text.trimEnd());
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
