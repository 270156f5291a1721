import { expect, test } from "bun:test";
import { bytesText, filesText, spanText, timeText } from "../../../src/cli/runs/amounts.ts";
import { Progress } from "../../../src/cli/runs/progress.ts";
import { Problem } from "../../../src/std/problem.ts";
import { FakeClock } from "../../std/fake-clock.ts";

function shown({ columns }: { columns: number | undefined }) {
  const clock = new FakeClock();
  const written: string[] = [];
  return { clock, written, progress: new Progress({ clock, write: (text) => written.push(text), columns }) };
}

const ALL = { files: 4, bytes: 40_000_000, skipped: [] };

test("a terminal has one line: bytes, files, rate and time left", () => {
  const { clock, written, progress } = shown({ columns: 200 });
  progress.begun(ALL);
  clock.advance(1_000);
  progress.moved(10_000_000);
  progress.fileDone();
  clock.advance(1_000);
  expect(written.at(-1)).toBe("\r\u001b[K25 %  10.0 MB of 40.0 MB  5.00 MB/s  0:06 left  1 of 4 files");
  progress.end();
  expect([written.at(-1), clock.armed]).toEqual(["\r\u001b[K", 0]);
});

test("the line is never wider than the terminal", () => {
  const { clock, written, progress } = shown({ columns: 15 });
  progress.begun(ALL);
  clock.advance(200);
  expect(written.at(-1)).toBe("\r\u001b[K0 %  0 B of 40");
  progress.end();
});

test("without a terminal there is a whole line every few seconds, and no escape code", () => {
  const { clock, written, progress } = shown({ columns: undefined });
  progress.begun({ ...ALL, skipped: [".DS_Store", "a/.git"] });
  clock.advance(4_999);
  expect(written).toEqual(["skipped, as hidden files are: .DS_Store, a/.git\n"]);
  progress.moved(20_000_000);
  clock.advance(1);
  expect(written[1]).toEndWith("20.0 MB of 40.0 MB  4.00 MB/s  0:05 left  0 of 4 files\n");
  clock.advance(10_000);
  expect(written).toHaveLength(4);
  progress.end();
  expect(written.join("")).not.toContain("\u001b");
});

test("what was there counts as done and not as rate; what a failed attempt moved is taken back", () => {
  const { clock, written, progress } = shown({ columns: 200 });
  progress.begun(ALL);
  progress.there(20_000_000);
  progress.moved(10_000_000);
  progress.moved(-10_000_000);
  clock.advance(1_000);
  expect(written.at(-1)).toEndWith("50 %  20.0 MB of 40.0 MB  0 of 4 files");
  progress.moved(1_000_000);
  clock.advance(1_000);
  expect(written.at(-1)).toEndWith("500 kB/s  0:38 left  0 of 4 files");
  progress.end();
});

test("a pause says why, and how long it is", () => {
  const { clock, written, progress } = shown({ columns: 200 });
  progress.begun(ALL);
  progress.waiting(new Problem("storage_busy: too\nmany"), 8_000);
  clock.advance(1_000);
  expect(written.at(-1)).toEndWith("again in 0:07: storage_busy: too many  0 of 4 files");
  progress.moved(5);
  clock.advance(200);
  expect(written.at(-1)).not.toContain("again");
  progress.end();
});

test("amounts are short and never rounded into the wrong unit", () => {
  const bytes: [number, string][] = [
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1.00 kB"],
    [9_996, "10.0 kB"],
    [99_960, "100 kB"],
    [999_499, "999 kB"],
    [999_500, "1.00 MB"],
    [2_147_483_648, "2.15 GB"],
  ];
  for (const [value, text] of bytes) expect([value, bytesText(value)]).toEqual([value, text]);
  for (const [value, text] of [
    [0, "0:00"],
    [59.1, "1:00"],
    [3_599, "59:59"],
    [3_661, "1:01:01"],
  ] as const) {
    expect([value, spanText(value)]).toEqual([value, text]);
  }
  expect([filesText(1), filesText(0), timeText(1_700_000_000.9)]).toEqual([
    "1 file",
    "0 files",
    "2023-11-14T22:13:20Z",
  ]);
});
