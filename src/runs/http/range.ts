/** The ranges, conditions and dates of a request for a file (RFC 9110, sections 5.6.7, 13 and 14). */
import type { Failure } from "../../std/failure.ts";
import { invalid } from "../errors.ts";
import type { Precondition, Tags } from "../store/records.ts";

export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * One range of bytes. Several ranges, another unit and malformed ones select the whole file, as RFC 9110 allows. A range is
 * `unsatisfiable` if the file has none of its bytes.
 */
export function readRange(header: string | null, size: number): Range | "whole" | "unsatisfiable" {
  const [, set] = /^bytes=(.*)$/i.exec(header?.trim() ?? "") ?? [];
  if (set === undefined) return "whole";
  const ranges = set.split(",").flatMap((text) => text.trim() || []);
  const [only, second] = ranges;
  if (only === undefined || second !== undefined) return "whole";
  const [, first, last, suffix] = /^(?:(\d+)-(\d*)|-(\d+))$/.exec(only) ?? [];
  if (suffix !== undefined) {
    if (Number(suffix) === 0) return "unsatisfiable";
    // A suffix of an empty file is satisfiable, but no Content-Range can express it.
    return size === 0 ? "whole" : { from: Math.max(0, size - Number(suffix)), to: size };
  }
  if (first === undefined) return "whole";
  const from = Number(first);
  if (last && Number(last) < from) return "whole";
  if (from >= size) return "unsatisfiable";
  return { from, to: last ? Math.min(Number(last) + 1, size) : size };
}

/** Whether the client has this file already. A date counts only without a tag, and only if it is valid. */
export function isFresh(headers: Headers, etag: string, modifiedAt: number): boolean {
  const none = headers.get("if-none-match");
  if (none !== null) return none.trim() === "*" || tags(none).includes(etag);
  const since = readHttpDate(headers.get("if-modified-since")?.trim() ?? "", modifiedAt);
  return since !== undefined && modifiedAt <= since;
}

/**
 * Whether a range of the file may be sent: without `If-Range`, or if it names this file. A date is not exact enough: a run that is
 * deleted and uploaded again within a second has the same one (RFC 9110, section 8.8.2.2).
 */
export function mayBePart(headers: Headers, etag: string): boolean {
  const condition = headers.get("if-range");
  return condition === null || condition.trim() === etag;
}

const TAGS = /^(?:\*|(?:W\/)?"[^"]*"(?:\s*,\s*(?:W\/)?"[^"]*")*)$/;

/** What a `PUT` demands of the file that it replaces. A condition that cannot be read must not be taken for none. */
export function readPrecondition(headers: Headers): Precondition | Failure {
  for (const name of ["If-Match", "If-None-Match"]) {
    if (!TAGS.test(headers.get(name) ?? "*"))
      return invalid(`${name} is neither * nor a list of ETags, as \`"sha256-HEX"\``);
  }
  // A weak tag names no bytes for sure, so `If-Match` does not know it (RFC 9110, section 13.1.1).
  const strong = headers.get("if-match")?.replace(/W\/"[^"]*"/g, "");
  return { is: digests(strong), isNot: digests(headers.get("if-none-match") ?? undefined) };
}

/** The tags of a list that files can have. */
function digests(list: string | undefined): Tags | undefined {
  if (list === undefined || list === "*") return list && "any";
  return [...list.matchAll(/"sha256-([0-9a-f]{64})"/g)].map(([, hex = ""]) => hex);
}

/** The tags of a list, compared weakly (RFC 9110, section 8.8.3.2). */
function tags(list: string): string[] {
  return [...list.matchAll(/(?:W\/)?("[^"]*")/g)].map(([, tag = ""]) => tag);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)";
const SHORT = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";

/** The form that is sent today, and the two of old clients. */
const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${SHORT}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${LONG}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(`^${SHORT} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

/** Unix seconds; undefined if the text is no date. A year of two digits is at most 50 years after `nearSeconds`. */
export function readHttpDate(text: string, nearSeconds: number): number | undefined {
  for (const form of FORMS) {
    const { year = "", month = "", day, hour, minute, second } = form.exec(text)?.groups ?? {};
    if (day === undefined) continue;
    const whole = year.length === 2 ? century(Number(year), nearSeconds) : Number(year);
    const date = new Date(0);
    date.setUTCFullYear(whole, MONTHS.indexOf(month), Number(day));
    // A month may lack the 31st.
    if (date.getUTCDate() !== Number(day)) return undefined;
    return date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  }
  return undefined;
}

function century(year: number, nearSeconds: number): number {
  const latest = new Date(nearSeconds * 1000).getUTCFullYear() + 50;
  return latest - ((latest - year) % 100);
}
