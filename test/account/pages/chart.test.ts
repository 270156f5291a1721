import { describe, expect, test } from "bun:test";
import { accountPage } from "../../../src/account/pages/account.ts";
import { scaleOf, usageSection } from "../../../src/account/pages/chart.ts";
import { accountData, dayNumber, usageRow } from "./samples.ts";

const TODAY = dayNumber("2026-11-21");
const DOLLAR = 1_000_000_000n;

/** Heights and tops of each series' bars, in the order of the days. */
function barsOf(section: string, series: number): { y: number; height: number }[] {
  return [
    ...section.matchAll(
      new RegExp(`class="series-${series}" x="[^"]*" width="[^"]*" y="([^"]*)" height="([^"]*)"`, "g"),
    ),
  ].map(([, y, height]) => ({ y: Number(y), height: Number(height) }));
}

/** The cells of the first table with that caption, without the words that only a phone shows. */
function table(section: string, caption: string): string[][] {
  const [, found = ""] = section.split(`<caption><strong>${caption}</strong>`);
  const rows = (found.split("</table>")[0] ?? "")
    .replace(/<span class="what"[^>]*>[^<]*<\/span>/g, "")
    .split("<tr")
    .slice(1);
  return rows.map((row) =>
    [...row.matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell = ""]) => cell.replace(/<[^>]*>/g, "")),
  );
}

describe("the chart of usage", () => {
  test("draws each day's models on top of each other, as high as they cost", () => {
    const section = usageSection(
      [
        usageRow("2026-11-20", "a", 1, DOLLAR),
        usageRow("2026-11-20", "b", 1, 3n * DOLLAR),
        usageRow("2026-11-21", "b", 1, 2n * DOLLAR),
      ],
      TODAY,
    ).text;
    // The dearest model is the first series. The axis ends at $4, over 180 pixels that begin 8 from the top.
    expect(barsOf(section, 0)).toEqual([
      { y: 53, height: 135 },
      { y: 98, height: 90 },
    ]);
    expect(barsOf(section, 1)).toEqual([{ y: 8, height: 45 }]);
    expect([...section.matchAll(/text-anchor="end">([^<]*)</g)].map((match) => match[1])).toEqual([
      "$0",
      "$1",
      "$2",
      "$3",
      "$4",
    ]);
    expect(section).toContain("2026-11-20: $4.00\nb: $3.00, 1 chunk\na: $1.00, 1 chunk");
  });

  test("counts the last 30 days and no other", () => {
    const rows = [
      usageRow("2026-10-22", "old", 1, DOLLAR),
      usageRow("2026-10-23", "a", 1_200, DOLLAR),
      usageRow("2026-11-21", "a", 34, DOLLAR),
      usageRow("2026-11-22", "new", 1, DOLLAR),
    ];
    const section = usageSection(rows, TODAY).text;
    expect(section).not.toMatch(/old|new/);
    expect(table(section, "Robot models")).toEqual([
      ["Model", "Chunks", "Tokens in", "Of these cached", "Rows", "Cost"],
      ["a", "1,234", "246,800", "11,106", "37,020", "$2.00"],
    ]);
    expect(usageSection(rows.slice(0, 1), TODAY).text).toContain("Nothing was used in the last 30 days.");
  });

  test("shows six models at most; the cheap ones share a colour, and the tables name them all", () => {
    const rows = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => usageRow("2026-11-21", `model-${n}`, n, BigInt(n) * DOLLAR));
    const section = usageSection(rows, TODAY).text;
    const legend = /<ul class="legend"[\s\S]*?<\/ul>/.exec(section)?.[0].replace(/<[^>]*>/g, " ");
    expect(legend?.trim().split(/\s{2,}/)).toEqual([
      "model-8",
      "model-7",
      "model-6",
      "model-5",
      "model-4",
      "3 other models",
    ]);
    // 1 + 2 + 3 dollars of an axis that ends at 40.
    expect(barsOf(section, 5).map(({ height }) => height)).toEqual([27]);
    for (const { item } of rows) expect(section.split(`scope="row">${item}</th>`)).toHaveLength(1 + 2);
    const six = usageSection(rows.slice(0, 6), TODAY).text;
    expect(six).not.toContain("other models");
  });

  test("has an axis in few round steps, however small or large the costs are", () => {
    expect(scaleOf(4n * DOLLAR)).toEqual({ step: DOLLAR, top: 4n * DOLLAR });
    expect(scaleOf(4n * DOLLAR + 1n)).toEqual({ step: 2n * DOLLAR, top: 6n * DOLLAR });
    expect(scaleOf(1_300_417n)).toEqual({ step: 500_000n, top: 1_500_000n });
    expect(scaleOf(0n)).toEqual({ step: 10_000_000n, top: 10_000_000n });
    expect(usageSection([usageRow("2026-11-21", "a", 1, 1_300_417n)], TODAY).text).toContain(
      'text-anchor="end">$0.0005<',
    );
  });

  test("keeps robot models and language models apart, each in their own units", () => {
    const language = { kind: "language", promptTokens: 5_000, cachedTokens: 1_200, completionTokens: 700 } as const;
    const section = usageSection(
      [
        usageRow("2026-11-20", "arm", 2, DOLLAR),
        usageRow("2026-11-20", "llm:async", 1, DOLLAR, language),
        usageRow("2026-11-21", "llm:async", 1, 2n * DOLLAR, language),
        usageRow("2026-11-21", "llm:superfast", 3, DOLLAR / 2n, { ...language, cachedTokens: 0 }),
      ],
      TODAY,
    ).text;
    expect(table(section, "Robot models").slice(1)).toEqual([["arm", "2", "400", "18", "60", "$1.00"]]);
    expect(table(section, "Language models")).toEqual([
      ["Model", "Responses", "Tokens in", "Of these cached", "Tokens out", "Cost"],
      ["llm:async", "2", "10,000", "2,400", "1,400", "$3.00"],
      ["llm:superfast", "3", "5,000", "0", "700", "$0.50"],
      ["All of them", "5", "15,000", "2,400", "2,100", "$3.50"],
    ]);
    expect(section).toContain("2 chunks and 5 responses; the most on");
    const [, byDay = ""] = section.split("<details>");
    expect([byDay.split("<table").length, byDay.split('scope="row">llm:async').length]).toEqual([3, 3]);
  });

  test("is a picture with a description and the same numbers as a table", () => {
    const section = usageSection([usageRow("2026-11-20", "a", 3, DOLLAR)], TODAY).text;
    expect(section).toContain('role="img" aria-labelledby="chart-words"');
    expect(section).toContain("3 chunks; the most on 20 Nov, $1.00");
    expect(section).toMatch(
      /<details>[\s\S]*<time datetime="2026-11-20">[\s\S]*scope="row">a<\/th><td class="number" role="cell">[^/]*<\/span>3<\/td>/,
    );
  });
});

describe("the bar of the spend limit", () => {
  const bar = (spent: bigint, limit: bigint | undefined) => {
    const page = accountData("arm");
    const html = accountPage({ ...page, spent, account: { ...page.account, spendLimit: limit } });
    return /<rect class="(part|full)" width="([^"]*)"/.exec(html)?.slice(1);
  };

  test("is as long as the share that is spent, and marked from the limit on", () => {
    expect(bar(25n * DOLLAR, 100n * DOLLAR)).toEqual(["part", "25%"]);
    expect(bar(120n * DOLLAR, 100n * DOLLAR)).toEqual(["full", "100%"]);
    expect(bar(0n, 0n)).toEqual(["full", "100%"]);
    expect(bar(0n, DOLLAR)).toBeUndefined();
    expect(bar(DOLLAR, undefined)).toBeUndefined();
  });
});
