/** HTML as values: what is put into a template is escaped unless it is HTML already. */

export class Html {
  constructor(readonly text: string) {}
}

type Value = Html | readonly Html[] | string | number | undefined;

/** A template of HTML. An array is written as its parts, undefined as nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.map((string, at) => string + (at < values.length ? textOf(values[at]) : "")).join(""));
}

function textOf(value: Value): string {
  if (value === undefined) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map((part) => part.text).join("");
  return Bun.escapeHTML(visible(String(value)));
}

/**
 * Replaces control characters, except tab and line ends, and characters that are invisible or turn the direction of the text: with
 * them one name could be made to look like another.
 */
function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(/(?![\t\n\r])[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu, "\ufffd");
}
