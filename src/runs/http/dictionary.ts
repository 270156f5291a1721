/**
 * Dictionaries of structured fields (RFC 9651, sections 3.2 and 4.2.2), as far as telling their members apart needs. In one pass:
 * a single pattern for all of it would try a hostile field many times over.
 */

const KEY = /[a-z*][a-z0-9_\-.*]*/y;
/** A number, a token, bytes, a boolean or a date. */
const SIMPLE =
  /-?(?:\d{1,12}\.\d{1,3}|\d{1,15})(?![\d.])|[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*|:[A-Za-z0-9+/=]*:|\?[01]|@-?\d{1,15}(?![\d.])/y;
const STRING_PIECE = /[ !#-[\]-~]+|\\["\\]/y;
/** Of a string for people, `%"…"`. */
const DISPLAY_PIECE = /[ !#$&-~]+|%[0-9a-f]{2}/y;
const BLANKS = / */y;
const SEPARATOR = /[ \t]*,[ \t]*/y;

/** Values by their keys, as they stand there with their parameters; of a key that comes twice the last one. Undefined: malformed. */
export function readDictionary(field: string): ReadonlyMap<string, string> | undefined {
  const text = new Scanner(field.trim());
  const members = new Map<string, string>();
  while (!text.ended) {
    const key = text.take(KEY);
    if (key === undefined) return undefined;
    const start = text.at;
    const valued = text.accept("=");
    if (valued && !value(text)) return undefined;
    if (!parameters(text)) return undefined;
    members.set(key, valued ? text.since(start + 1) : "?1");
    if (text.ended) return members;
    if (text.take(SEPARATOR) === undefined || text.ended) return undefined;
  }
  return members;
}

class Scanner {
  at = 0;

  constructor(private readonly text: string) {}

  get ended(): boolean {
    return this.at === this.text.length;
  }

  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const [found] = pattern.exec(this.text) ?? [];
    this.at += found?.length ?? 0;
    return found;
  }

  accept(word: string): boolean {
    const found = this.text.startsWith(word, this.at);
    if (found) this.at += word.length;
    return found;
  }

  since(start: number): string {
    return this.text.slice(start, this.at);
  }
}

function value(text: Scanner): boolean {
  return text.accept("(") ? listRest(text) : bare(text);
}

function bare(text: Scanner): boolean {
  if (text.accept('"')) return quotedRest(text, STRING_PIECE);
  if (text.accept('%"')) return quotedRest(text, DISPLAY_PIECE);
  return text.take(SIMPLE) !== undefined;
}

function quotedRest(text: Scanner, piece: RegExp): boolean {
  while (text.take(piece) !== undefined);
  return text.accept('"');
}

function listRest(text: Scanner): boolean {
  for (let first = true; ; first = false) {
    const blanks = text.take(BLANKS);
    if (text.accept(")")) return true;
    if (!first && blanks === "") return false;
    if (!bare(text) || !parameters(text)) return false;
  }
}

function parameters(text: Scanner): boolean {
  while (text.accept(";")) {
    text.take(BLANKS);
    if (text.take(KEY) === undefined) return false;
    if (text.accept("=") && !bare(text)) return false;
  }
  return true;
}
