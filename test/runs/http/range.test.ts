/**
 * Ranges and conditions, as tables. The cases come from RFC 9110, sections 13 and 14, and from the public tests of jshttp/range-parser
 * (commit b49e00f6) and pillarjs/send (commit 092f3fc7), MIT. Cases of the same kind appear once. Contract section 7 wins: several ranges
 * and malformed ones are answered with the whole file.
 */
import { describe, expect, test } from "bun:test";
import { isFresh, mayBePart, readHttpDate, readRange } from "../../../src/runs/http/range.ts";

type Answer = readonly [from: number, to: number] | "whole" | "unsatisfiable";

/** The size, the header, and the answer, whose last byte is included as in `Content-Range`. */
type Row = readonly [size: number, header: string | null, answer: Answer];

function answerOf(size: number, header: string | null): Answer {
  const found = readRange(header, size);
  return typeof found === "string" ? found : [found.from, found.to - 1];
}

function each(title: string, rows: readonly Row[]): void {
  test.each(rows.map((row) => [JSON.stringify(row), row] as const))(`${title}: %s`, (_, [size, header, answer]) => {
    expect(answerOf(size, header)).toEqual(answer);
  });
}

describe("range-parser and send", () => {
  each("one range", [
    [1000, "bytes=0-499", [0, 499]],
    [200, "bytes=0-499", [0, 199]],
    [1000, "bytes=40-80", [40, 80]],
    [1000, "bytes=-400", [600, 999]],
    [1000, "bytes=400-", [400, 999]],
    [1000, "bytes=0-", [0, 999]],
    [1000, "bytes=0-0", [0, 0]],
    [1000, "bytes=-1", [999, 999]],
    [1000, "bytes= , 0-10", [0, 10]],
    [200, "bytes=500-600", "unsatisfiable"],
  ]);

  each("none, another unit or a malformed one is ignored; an end before the start is malformed", [
    [200, null, "whole"],
    [200, "", "whole"],
    [200, "malformed", "whole"],
    [1000, "items=0-5", "whole"],
    [200, "bytes=100200", "whole"],
    [200, "bytes=,100200", "whole"],
    [200, "bytes=x-100", "whole"],
    [200, "bytes=100-x", "whole"],
    [200, "bytes=--100", "whole"],
    [200, "bytes=100--200", "whole"],
    [200, "bytes=-", "whole"],
    [200, "bytes= - ", "whole"],
    [200, "bytes=", "whole"],
    [200, "bytes=,", "whole"],
    [200, "bytes= , , ", "whole"],
    [200, "bytes=100-200-300", "whole"],
    [200, "bytes=-100-150", "whole"],
    [200, "bytes=01a-150", "whole"],
    [200, "bytes=100-15b0", "whole"],
    [200, "bytes=500-20", "whole"],
  ]);

  each("several are answered with the whole file, also if some are malformed or unsatisfiable", [
    [200, "bytes=y-v,x-", "whole"],
    [200, "bytes=x-,y-,z-", "whole"],
    [200, "bytes=500-600,601-700", "whole"],
    [200, "bytes=abc-def,500-999", "whole"],
    [200, "bytes=abc-def,500-999,xyz-uvw", "whole"],
    [1000, "bytes=100-200,x-", "whole"],
    [1000, "bytes=x-,0-100,y-", "whole"],
    [1000, "bytes=   40-80 , 81-90 , -1 ", "whole"],
    [200, "bytes=0-499,1000-,500-999", "whole"],
    [150, "bytes=0-4,90-99,5-75,100-199,101-102", "whole"],
    [9, "bytes=1-2,3-5", "whole"],
  ]);
});

describe("RFC 9110", () => {
  each("14.1.2, ends", [
    [10_000, "bytes=9999-", [9_999, 9_999]],
    [10_000, "bytes=10000-", "unsatisfiable"],
    [10_000, "bytes=9999-9999", [9_999, 9_999]],
    [10_000, "bytes=0-9999", [0, 9_999]],
    [10_000, "bytes=0-10000", [0, 9_999]],
    [10_000, "bytes=-10000", [0, 9_999]],
    [10_000, "bytes=-10001", [0, 9_999]],
    [10_000, "bytes=-0", "unsatisfiable"],
    [10_000, "bytes=00-0001", [0, 1]],
    [1, "bytes=0-", [0, 0]],
    [1, "bytes=1-", "unsatisfiable"],
  ]);

  each("14.1.2, an empty file: only a suffix is satisfiable, and a Content-Range cannot name it", [
    [0, "bytes=-5", "whole"],
    [0, "bytes=-0", "unsatisfiable"],
    [0, "bytes=0-", "unsatisfiable"],
    [0, "bytes=0-0", "unsatisfiable"],
  ]);

  each("14.1 and 5.6.1, units are case-insensitive, empty members of a list do not count", [
    [10, "Bytes=0-1", [0, 1]],
    [10, "BYTES=0-1", [0, 1]],
    [10, "bytes=,0-1,", [0, 1]],
    [10, "bytes=, ,\t0-1 , ,", [0, 1]],
    [10, " bytes=0-1 ", [0, 1]],
  ]);

  each("14.1.1, malformed", [
    [10, "bytes", "whole"],
    [10, "bytes 0-1", "whole"],
    [10, "bytes =0-1", "whole"],
    [10, "bytes:0-1", "whole"],
    [10, "=0-1", "whole"],
    [10, "0-1", "whole"],
    [10, "bytes=0 - 1", "whole"],
    [10, "bytes=+0-1", "whole"],
    [10, "bytes=0-1;q=1", "whole"],
    [10, "bytes=0-1 2-3", "whole"],
    [10, "bytes=0x0-0x1", "whole"],
    [10, "bytes=1e0-2", "whole"],
    [10, "bytes=0.0-1", "whole"],
    [10, "bytes=٠-١", "whole"],
    [10, "bytes==0-1", "whole"],
    [10, "bytes=2-1", "whole"],
    [10, "bytes=0-1, bytes=2-3", "whole"],
    [10, "bytes=*", "whole"],
    [10, "none", "whole"],
    [10, "exampleunit=1.2-4.3", "whole"],
  ]);

  const digits = "9".repeat(400);
  each("14.1.2, numbers beyond any file", [
    [10, `bytes=0-${digits}`, [0, 9]],
    [10, `bytes=${digits}-`, "unsatisfiable"],
    [10, `bytes=${digits}-${digits}`, "unsatisfiable"],
    [10, `bytes=-${digits}`, [0, 9]],
    [10, `bytes=${"0".repeat(400)}1-2`, [1, 2]],
    [10, "bytes=18446744073709551615-", "unsatisfiable"],
    [10, "bytes=0-18446744073709551615", [0, 9]],
    [10, "bytes=-18446744073709551616", [0, 9]],
    [10, "bytes=9223372036854775807-9223372036854775806", "unsatisfiable"],
  ]);

  test("14.2: ten thousand ranges, and one of many blanks, are one look at the header", () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `${index}-${index}`).join(",");
    expect(readRange(`bytes=${many}`, 10)).toBe("whole");
    expect(readRange(`bytes=${" ".repeat(8_192)}0-1`, 10)).toEqual({ from: 0, to: 2 });
    expect(readRange(`bytes=${",".repeat(8_192)}0-1`, 10)).toEqual({ from: 0, to: 2 });
  });
});

const TAG = '"sha256-aa"';
/** The example of RFC 9110. */
const AT = Date.UTC(1994, 10, 6, 8, 49, 37) / 1000;
const DATE = "Sun, 06 Nov 1994 08:49:37 GMT";

describe("If-None-Match and If-Modified-Since", () => {
  type Case = readonly [why: string, headers: Record<string, string>, fresh: boolean];
  const CASES: readonly Case[] = [
    ["none of them", {}, false],
    ["13.1.2: the tag", { "if-none-match": TAG }, true],
    ["13.1.2: another tag", { "if-none-match": '"123"' }, false],
    ["13.1.2: any", { "if-none-match": "*" }, true],
    ["13.1.2: the comparison is weak", { "if-none-match": `W/${TAG}` }, true],
    ["13.1.2: a list", { "if-none-match": `"xyzzy", ${TAG}, "c3piozzzz"` }, true],
    ["13.1.2: a list, weak", { "if-none-match": `W/"xyzzy", W/${TAG}` }, true],
    ["13.1.2: a list without it", { "if-none-match": 'W/"xyzzy", W/"r2d2xxxx", W/"c3piozzzz"' }, false],
    ["5.6.1: a list with empty members", { "if-none-match": `, ,${TAG},` }, true],
    ["8.8.3: a comma inside a tag", { "if-none-match": `"a,b",${TAG}` }, true],
    ["8.8.3: the tag inside another", { "if-none-match": '"x sha256-aa"' }, false],
    ["8.8.3: tags differ by case", { "if-none-match": TAG.toUpperCase() }, false],
    ["8.8.3: without quotes it is no tag", { "if-none-match": "sha256-aa" }, false],
    ["8.8.3: half a tag", { "if-none-match": '"sha256-aa' }, false],
    ["empty", { "if-none-match": "" }, false],
    ["garbage", { "if-none-match": '\\";,,;W/W/""""' }, false],
    ["13.1.2: it wins over a date", { "if-none-match": '"123"', "if-modified-since": DATE }, false],
    [
      "13.1.2: it wins over a date",
      { "if-none-match": TAG, "if-modified-since": "Sun, 06 Nov 1993 08:49:37 GMT" },
      true,
    ],
    ["13.1.3: the same date", { "if-modified-since": DATE }, true],
    ["13.1.3: a later date", { "if-modified-since": "Sun, 06 Nov 1994 08:49:38 GMT" }, true],
    ["13.1.3: a date before", { "if-modified-since": "Sun, 06 Nov 1994 08:49:36 GMT" }, false],
    ["5.6.7: the form of RFC 850", { "if-modified-since": "Sunday, 06-Nov-94 08:49:37 GMT" }, true],
    ["5.6.7: the form of asctime", { "if-modified-since": "Sun Nov  6 08:49:37 1994" }, true],
    ["13.1.3: not a date of HTTP", { "if-modified-since": "2030-01-01T00:00:00Z" }, false],
    ["13.1.3: not a date of HTTP", { "if-modified-since": "2030" }, false],
    ["13.1.3: not a date of HTTP", { "if-modified-since": "Sun, 06 Nov 2030 08:49:37 +0000" }, false],
    ["13.1.3: not a date of HTTP", { "if-modified-since": "Nov 6 2030" }, false],
    ["13.1.3: not a date of HTTP", { "if-modified-since": "foo" }, false],
    ["13.1.3: two dates are none", { "if-modified-since": `${DATE}, ${DATE}` }, false],
    ["13.1.3: empty", { "if-modified-since": "" }, false],
  ];
  test.each(CASES)("%s: %j", (_, headers, fresh) => {
    expect(isFresh(new Headers(headers), TAG, AT)).toBe(fresh);
  });
});

describe("If-Range", () => {
  type Case = readonly [why: string, value: string | undefined, part: boolean];
  const CASES: readonly Case[] = [
    ["none", undefined, true],
    ["13.1.5: the tag", TAG, true],
    ["send: the tag has changed", '"0sha256-aa"', false],
    ["13.1.5: the comparison is strong", `W/${TAG}`, false],
    ["13.1.5: two weak ones", 'W/"sha256-aa", W/"sha256-aa"', false],
    ["13.1.5: no list", `${TAG}, "123"`, false],
    ["13.1.5: it has no star", "*", false],
    ["send gives a part here; 8.8.2.2: seconds are not strong", DATE, false],
    ["send: another date", "Sun, 06 Nov 1994 08:49:17 GMT", false],
    ["13.1.5: a later date is not the same", "Sun, 06 Nov 1994 08:49:38 GMT", false],
    ["send: garbage", "foo", false],
    ["without quotes it is no tag", "sha256-aa", false],
    ["empty", "", false],
  ];
  test.each(CASES)("%s: %p", (_, value, part) => {
    expect(mayBePart(new Headers(value === undefined ? {} : { "if-range": value }), TAG)).toBe(part);
  });
});

describe("dates of RFC 9110, 5.6.7", () => {
  test.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", AT],
    ["Sunday, 06-Nov-94 08:49:37 GMT", AT],
    ["Sun Nov  6 08:49:37 1994", AT],
    ["Wed Nov 16 08:49:37 1994", AT + 10 * 86_400],
    ["Fri, 31 Dec 1999 23:59:60 GMT", Date.UTC(2000, 0, 1) / 1000],
    ["Tue, 29 Feb 2000 00:00:00 GMT", Date.UTC(2000, 1, 29) / 1000],
    ["Mon, 29 Feb 1999 00:00:00 GMT", undefined],
    ["Sun, 31 Nov 1994 08:49:37 GMT", undefined],
    ["Sun, 00 Nov 1994 08:49:37 GMT", undefined],
    ["Sun, 06 Nov 1994 24:00:00 GMT", undefined],
    ["Sun, 06 Nov 1994 08:60:00 GMT", undefined],
    ["Sun, 6 Nov 1994 08:49:37 GMT", undefined],
    ["sun, 06 nov 1994 08:49:37 gmt", undefined],
    ["Sun, 06 Nov 1994 08:49:37 UTC", undefined],
    ["Sun, 06 Nov 1994 08:49:37 GMT ", undefined],
    ["Sun, 06 Nov 94 08:49:37 GMT", undefined],
    ["", undefined],
  ])("%p", (text, seconds) => {
    expect(readHttpDate(text, AT)).toBe(seconds);
  });

  test.each([
    [2026, "76", 2076],
    [2026, "77", 1977],
    [2026, "26", 2026],
    [2099, "00", 2100],
    [2026, "99", 1999],
  ])("in %i a year %s means %i: at most 50 years ahead", (now, year, meant) => {
    const near = Date.UTC(now, 6) / 1000;
    expect(readHttpDate(`Monday, 01-Jan-${year} 00:00:00 GMT`, near)).toBe(Date.UTC(meant, 0) / 1000);
  });
});
