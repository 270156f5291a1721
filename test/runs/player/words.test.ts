import { expect, test } from "bun:test";
import { Newest } from "../../../src/runs/player/newest.ts";
import { clockText, fileAddress, msText, valueText } from "../../../src/runs/player/words.ts";

test("a time reads as a clock with milliseconds", () => {
  expect([0, 7.1333, 59.9996, 61.5, 3723.4, -1].map(clockText)).toEqual([
    "0:00.000",
    "0:07.133",
    "1:00.000",
    "1:01.500",
    "1:02:03.400",
    "0:00.000",
  ]);
});

test("numbers keep the digits that matter; what is none is a dash", () => {
  expect([0, 1.23456, -0.0001, 123.456, 1e7, Number.NaN, undefined].map(valueText)).toEqual([
    "0.000",
    "1.235",
    "-1.00e-4",
    "123.5",
    "1.00e+7",
    "–",
    "–",
  ]);
  expect([msText(1.234), msText(84.26), msText(undefined)]).toEqual(["1.23 ms", "84.3 ms", "–"]);
});

test("a path that the log names leads to a file of the run, and to nothing else", () => {
  const of = (path: string) => fileAddress("/run/files/", path);
  expect(of("frames/top cam/0#1?.jpg")).toBe("/run/files/frames/top%20cam/0%231%3F.jpg");
  for (const path of ["../x", "a/../b", "/etc", "a//b", "", ".", "\ud800"]) expect(of(path)).toBeUndefined();
  expect(of("https://evil.example/x".replace("//", "/"))).toBe("/run/files/https%3A/evil.example/x");
});

test("the last of the wishes that come while one is worked on is next", async () => {
  const done: number[] = [];
  let release = () => {};
  const newest = new Newest<number>(
    async (wish) => {
      done.push(wish);
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    },
    () => {},
  );
  for (const wish of [1, 2, 3]) newest.ask(wish);
  expect([done, newest.outdated]).toEqual([[1], true]);
  release();
  await Bun.sleep(0);
  expect([done, newest.outdated]).toEqual([[1, 3], false]);
});
