/** Reading a run's log by ranges: what is found, and how little is read for it. */
import { describe, expect, test } from "bun:test";
import { dueAt, dueLines, dueSamples, LogProblem, type Observation } from "../../../src/runs/player/log-lines.ts";
import { PAGE_BYTES, PagedFile } from "../../../src/runs/player/paged-file.ts";
import { evenly, RunLog, type Stretch, WHOLE_BYTES_MAX } from "../../../src/runs/player/run-log.ts";
import { type Episode, episode, headLine, logOf, observationLine } from "../views/episode.ts";

/** Text as a file that notes what is read of it. */
function fileOf(text: string) {
  const bytes = new TextEncoder().encode(text);
  const reads: [start: number, end: number][] = [];
  const read = async (start: number, end: number) => {
    reads.push([start, end]);
    return bytes.slice(start, end);
  };
  return { size: bytes.length, reads, read, sum: () => reads.reduce((sum, [start, end]) => sum + end - start, 0) };
}

async function open(text: string) {
  const file = fileOf(text);
  return { log: await RunLog.open(file.size, file.read), file };
}

async function stretchOf(log: RunLog, from: number, to: number): Promise<Stretch> {
  let last: Stretch = { lines: [], whole: false };
  await log.between(
    from,
    to,
    (stretch) => {
      last = stretch;
    },
    () => true,
  );
  return last;
}

const LONG: Episode = episode({ observations: 20_000, rows: 6 });
const LONG_LOG = logOf(LONG);

describe("a log", () => {
  test("is found line by line at any time, from before the first to after the last", async () => {
    const of = episode();
    const { log } = await open(logOf(of));
    const stepAt = async (t: number) => (await log.at(t))?.step;
    expect([await stepAt(-1), await stepAt(0), await stepAt(0.49), await stepAt(0.5), await stepAt(99)]).toEqual([
      0, 0, 0, 1, 7,
    ]);
    const third = await log.at(1.6);
    if (third === undefined) throw new Error("no line");
    expect([third.step, (await log.after(third))?.step, (await log.before(third))?.step]).toEqual([3, 4, 2]);
    expect((await log.last())?.step).toBe(7);
  });

  test("gives the same lines whether they are asked for upwards, downwards or at random", async () => {
    const { log } = await open(LONG_LOG);
    let random = 1;
    for (let count = 0; count < 300; count += 1) {
      random = (random * 48_271) % 2_147_483_647;
      const t = (random / 2_147_483_647) * LONG.observations * LONG.every;
      expect((await log.at(t))?.step).toBe(Math.floor(t / LONG.every));
    }
    for (let step = 19_999; step > 19_900; step -= 1) expect((await log.at(step * LONG.every))?.step).toBe(step);
  });

  test("of many megabytes costs its head, its end and a few pages for a moment", async () => {
    expect(LONG_LOG.length).toBeGreaterThan(4 * WHOLE_BYTES_MAX);
    const { log, file } = await open(LONG_LOG);
    await log.last();
    const before = file.reads.length;
    expect((await log.at(5000.1))?.step).toBe(10_000);
    expect(file.reads.length - before).toBeLessThan(20);
    expect(file.sum()).toBeLessThan(30 * PAGE_BYTES);
    const between = file.reads.length;
    for (let t = 5000; t < 5005; t += 0.1) await log.at(t);
    expect(file.reads.length - between).toBeLessThan(3);
  });

  test("is never read whole over 2 MiB: a long stretch is some of its lines, evenly spread, a short one all", async () => {
    const { log, file } = await open(LONG_LOG);
    const all = await stretchOf(log, 0, 10_000);
    expect(all.whole).toBe(false);
    expect(all.lines.length).toBeGreaterThan(200);
    const gaps = all.lines.slice(1).map(({ t }, at) => t - (all.lines[at]?.t ?? 0));
    expect(Math.max(...gaps)).toBeLessThan((2 * 10_000) / 200);
    expect(file.sum()).toBeLessThan(LONG_LOG.length * 0.75);
    const short = await stretchOf(log, 4000, 4010);
    expect(short.whole).toBe(true);
    const steps = short.lines.map(({ step }) => step ?? -1);
    expect(steps).toEqual(Array.from({ length: steps.length }, (_, at) => (steps[0] ?? 0) + at));
    expect([(steps[0] ?? 0) <= 8000, (steps.at(-1) ?? 0) >= 8020, steps.length < 30]).toEqual([true, true, true]);
  });

  test("with lines that are no observations is read without them, and says how many", async () => {
    const of = episode();
    const lines = [headLine(of), "{", observationLine(of, 0), '{"type":"note"}', observationLine(of, 1), "[1]"];
    const { log } = await open(`${lines.join("\n")}\n{"type":"observation","t":9`);
    expect((await stretchOf(log, 0, 9)).lines.map(({ step }) => step)).toEqual([0, 1]);
    expect((await log.last())?.step).toBe(1);
    expect(log.broken).toBe(3);
  });

  test.each([
    ["", "it has no whole line"],
    ["no log", "it has no whole line"],
    ["{}\n", "its first line is not the head of an episode"],
    ['{"type":"episode","version":2}\n', "it is of version 2; this page reads version 1"],
    ['{"type":"episode","version":1}\n', "its head has no time between action rows (action.dt)"],
  ])("%j is none: %s", async (text, words) => {
    await expect(open(text)).rejects.toEqual(new LogProblem(words));
  });

  test("full of something else is not searched to its end", async () => {
    const noise = `${headLine(episode())}\n${"{}\n".repeat(2_000_000)}`;
    const { log, file } = await open(noise);
    await expect(log.at(1)).rejects.toBeInstanceOf(LogProblem);
    expect(file.sum()).toBeLessThan(noise.length / 4);
    const endless = await open(`${headLine(episode())}\n${"x".repeat(5_000_000)}`);
    await expect(endless.log.at(1)).rejects.toEqual(new LogProblem("it has a line of over 1 MiB"));
  });
});

describe("pages of a file", () => {
  test("that lie side by side are one request, and are asked for once", async () => {
    const text = "0123456789".repeat(20_000);
    const file = fileOf(text);
    const paged = new PagedFile(file.size, file.read);
    const slice = async (start: number, end: number) => new TextDecoder().decode(await paged.bytes(start, end));
    expect(await slice(5, 70_000)).toBe(text.slice(5, 70_000));
    expect(file.reads).toEqual([[0, 5 * PAGE_BYTES]]);
    expect(await slice(60_000, 110_000)).toBe(text.slice(60_000, 110_000));
    expect(file.reads.slice(1)).toEqual([[5 * PAGE_BYTES, 7 * PAGE_BYTES]]);
    expect(await slice(199_990, 300_000)).toBe("0123456789");
    expect(await slice(300_000, 300_001)).toBe("");
  });

  test("are asked for again after a failure, and forgotten when many others were read", async () => {
    let fails = true;
    let requests = 0;
    const paged = new PagedFile(400 * PAGE_BYTES, async (start, end) => {
      requests += 1;
      if (fails) throw new Error("offline");
      return new Uint8Array(end - start);
    });
    await expect(paged.bytes(0, 10)).rejects.toThrow("offline");
    fails = false;
    expect((await paged.bytes(0, 10)).length).toBe(10);
    for (let page = 1; page < 400; page += 1) await paged.bytes(page * PAGE_BYTES, page * PAGE_BYTES + 1);
    await paged.bytes(0, 10);
    expect(requests).toBe(402);
  });
});

describe("action rows", () => {
  const line = (t: number, start: number, rows: number): Observation => ({
    offset: 0,
    t,
    step: undefined,
    observationId: undefined,
    state: [],
    frames: new Map(),
    chunk: { start, actions: Array.from({ length: rows }, (_, row) => [t * 100 + row]) },
    latencyMs: undefined,
    timingsMs: [],
    error: undefined,
  });
  const lines = [line(0, 0.1, 5), { ...line(0.3, 0.4, 5), chunk: undefined }, line(1, 1.05, 5)];

  test("row i is due at start + i * dt until the next chunk starts, and the last one for one dt", () => {
    const due = (t: number) => dueAt(lines, t, 0.1)?.row[0];
    expect([0, 0.1, 0.19, 0.2, 0.3, 0.59, 0.6, 1.04, 1.05, 1.16].map(due)).toEqual([
      undefined,
      0,
      0,
      1,
      2,
      4,
      undefined,
      undefined,
      100,
      101,
    ]);
    expect(dueAt(lines, 0.2, 0.1)).toEqual({ row: [1], index: 1, of: 5 });
  });

  test("a chunk is drawn as far as its rows were due", () => {
    const overlapping = [line(0, 0, 5), line(1, 0.25, 2)];
    expect(dueLines(overlapping, 0, 0.1).map((points) => points.map(({ value }) => value))).toEqual([
      [0, 1, 2],
      [100, 101],
    ]);
    expect(dueSamples(overlapping, 0)).toEqual([
      [
        { t: 0, value: 0 },
        { t: 0.25, value: 100 },
      ],
    ]);
  });
});

test("after any number of them, even shares leave no large gap", () => {
  const shares = evenly(256);
  expect(new Set(shares).size).toBe(256);
  for (const count of [2, 8, 64]) {
    const sorted = [...shares.slice(0, count).toSorted((a, b) => a - b), 1];
    expect(Math.max(...sorted.slice(1).map((share, at) => share - (sorted[at] ?? 0)))).toBeLessThanOrEqual(1 / count);
  }
});
