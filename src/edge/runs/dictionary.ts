/** Dictionaries of structured fields (RFC 9651, sections 3.2 and 4.2.2), as far as telling their members apart needs. */

const KEY = "[a-z*][a-z0-9_\\-.*]*";
const BARE = [
  // An integer or a decimal, a string, a token, bytes, a boolean, a date, a string for people.
  "-?(?:\\d{1,12}\\.\\d{1,3}|\\d{1,15})(?![\\d.])",
  '"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"',
  "[A-Za-z*][!#$%&'*+\\-.^_`|~0-9A-Za-z:/]*",
  ":[A-Za-z0-9+/=]*:",
  "\\?[01]",
  "@-?\\d{1,15}(?![\\d.])",
  '%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',
].join("|");
const PARAMETERS = `(?:; *${KEY}(?:=(?:${BARE}))?)*`;
const ITEM = `(?:${BARE})${PARAMETERS}`;
const LIST = `\\( *(?:${ITEM}(?: +${ITEM})* *)?\\)${PARAMETERS}`;

const MEMBER = new RegExp(`(${KEY})(?:=(${ITEM}|${LIST})|${PARAMETERS})`, "y");
const COMMA = /[ \t]*,[ \t]*(?!$)/y;

/** Values by their keys, as they stand there with their parameters; of a key that comes twice the last one. Undefined: malformed. */
export function readDictionary(field: string): ReadonlyMap<string, string> | undefined {
  const text = field.trim();
  const members = new Map<string, string>();
  let at = 0;
  while (at < text.length) {
    MEMBER.lastIndex = at;
    const [member, key, value = "?1"] = MEMBER.exec(text) ?? [];
    if (member === undefined || key === undefined) return undefined;
    members.set(key, value);
    at += member.length;
    if (at === text.length) break;
    COMMA.lastIndex = at;
    const [comma] = COMMA.exec(text) ?? [];
    if (comma === undefined) return undefined;
    at += comma.length;
  }
  return members;
}
