/** Dates of HTTP (RFC 9110, section 5.6.7): the form that is sent today and the two of old clients. Nothing else is one. */

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)";
const SHORT = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day";

const FORMS = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${SHORT}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${LONG}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME} GMT$`),
  // Sun Nov  6 08:49:37 1994
  new RegExp(`^${SHORT} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

/** Unix seconds; undefined: it is no date. A year of two digits is the one that is at most 50 years after `nearSeconds`. */
export function readHttpDate(text: string, nearSeconds: number): number | undefined {
  for (const form of FORMS) {
    const { year = "", month = "", day, hour, minute, second } = form.exec(text)?.groups ?? {};
    if (day === undefined) continue;
    const whole = year.length === 2 ? century(Number(year), nearSeconds) : Number(year);
    const date = new Date(0);
    date.setUTCFullYear(whole, MONTHS.indexOf(month), Number(day));
    // The 31st of a month that has 30 days.
    if (date.getUTCDate() !== Number(day)) return undefined;
    return date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  }
  return undefined;
}

function century(year: number, nearSeconds: number): number {
  const latest = new Date(nearSeconds * 1000).getUTCFullYear() + 50;
  return latest - ((latest - year) % 100);
}
