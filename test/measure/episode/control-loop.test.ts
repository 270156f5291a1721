import { expect, test } from "bun:test";
import { type LoopPlan, runLoop } from "../../../src/measure/episode/control-loop.ts";
import {
  adaptiveRowsAhead,
  CAPTURE_AHEAD_MS,
  type Connection,
  type LoopFigures,
  MARGIN_ROWS,
  PERIOD_MS,
} from "../../../src/measure/episode/loop-robot.ts";
import { Problem } from "../../../src/std/problem.ts";
import { FakeClock } from "../../std/fake-clock.ts";

const ROWS = 30;

/** A clock that a busy machine can hold up: time goes on, timers fire later. */
class HeldClock extends FakeClock {
  heldMs = 0;
  override monotonicMs(): number {
    return super.monotonicMs() + this.heldMs;
  }
}

/** Answers after the next of `latenciesMs`; the last one holds for all that follow. */
class FakeConnection implements Connection {
  readonly captures: number[] = [];
  readonly observations: number[] = [];

  constructor(
    private readonly clock: FakeClock,
    private readonly latenciesMs: readonly (number | Problem)[],
  ) {}

  capture(): void {
    this.captures.push(this.clock.monotonicMs());
  }

  observe(): Promise<number | Problem> {
    const latency = this.latenciesMs[this.observations.length] ?? this.latenciesMs.at(-1) ?? 0;
    this.observations.push(this.clock.monotonicMs());
    if (latency instanceof Problem) return Promise.resolve(latency);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.clock.after(latency, () => resolve(ROWS));
    return promise;
  }
}

/** Plays the loop to its end; `each` is called every millisecond. */
async function play(
  clock: FakeClock,
  plan: Partial<LoopPlan> & Pick<LoopPlan, "connections">,
  each: (ms: number) => void = () => {},
): Promise<LoopFigures | Problem> {
  let ended = false;
  const loop = { clock, spreadMs: 0, rowsAhead: "adaptive", warmupMs: 510, measuredMs: 3000, ...plan } as const;
  const outcome = runLoop(loop).finally(() => {
    ended = true;
  });
  for (let ms = 0; !ended && ms < 20_000; ms += 1) {
    clock.advance(1);
    each(ms);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  }
  if (!ended) throw new Error("the loop did not end");
  return await outcome;
}

async function figures(...args: Parameters<typeof play>): Promise<LoopFigures> {
  const outcome = await play(...args);
  if (outcome instanceof Problem) throw new Error(outcome.message);
  return outcome;
}

test("a robot asks while its last rows play, so that no row is late and no command waits", async () => {
  const clock = new FakeClock();
  const robot = new FakeConnection(clock, [40]);
  const told = await figures(clock, { connections: [robot] });
  expect(told).toMatchObject({ rowsDue: 90, rowsWithoutChunk: 0, rowsTickedLate: 0 });
  expect(told.longestGapMs).toBeLessThan(PERIOD_MS + 2);
  expect(new Set(told.latenciesMs)).toEqual(new Set([40]));
  expect(adaptiveRowsAhead(40)).toBe(Math.ceil((CAPTURE_AHEAD_MS + 40) / PERIOD_MS) + MARGIN_ROWS);
  // The first row is due at the first tick after the first chunk; the second one is asked for when that number of rows is left.
  const secondMs = 2 * PERIOD_MS + (ROWS - adaptiveRowsAhead(40) - 1) * PERIOD_MS;
  expect(robot.captures[1]).toBeGreaterThanOrEqual(secondMs);
  expect(robot.captures[1]).toBeLessThan(secondMs + 2);
  // A chunk per thirty rows, and each observation behind its frames.
  for (const [index, ms] of robot.observations.entries()) {
    const capturedMs = robot.captures[index] ?? Number.NaN;
    expect(ms - capturedMs).toBe(CAPTURE_AHEAD_MS);
    if (index > 1) expect(capturedMs - (robot.captures[index - 1] ?? 0)).toBeCloseTo(ROWS * PERIOD_MS, -1);
  }
});

test("rows whose chunk is not there at their deadline are late, each of them; later the robot asks earlier", async () => {
  const clock = new FakeClock();
  const told = await figures(clock, { connections: [new FakeConnection(clock, [40, 600])] });
  // Asked with 7 rows left; the chunk comes between the 18th and the 19th tick from then.
  expect(told).toMatchObject({ rowsDue: 90, rowsWithoutChunk: 11, rowsTickedLate: 0 });
  expect(told.longestGapMs).toBeGreaterThan(12 * PERIOD_MS - 2);
  expect(told.longestGapMs).toBeLessThan(12 * PERIOD_MS + 2);
  expect(Math.max(...told.latenciesMs)).toBe(600);
});

test("a tick that fires over a period late makes its row late, and no later one", async () => {
  const clock = new HeldClock();
  const told = await figures(clock, { connections: [new FakeConnection(clock, [20])] }, (ms) => {
    if (ms === 1000) clock.heldMs += 90;
  });
  // Three ticks fell into the pause; the last of them fired within its period.
  expect(told).toMatchObject({ rowsDue: 90, rowsWithoutChunk: 0, rowsTickedLate: 2 });
  expect(told.longestGapMs).toBeGreaterThan(90);
  expect(told.longestGapMs).toBeLessThan(90 + PERIOD_MS + 2);
  expect(told.tickLatenessMs.filter((ms) => ms > 2)).toHaveLength(3);
});

test("a robot that gets no chunk at all has every row late, and its gap is the whole time", async () => {
  const clock = new FakeClock();
  const told = await figures(clock, { connections: [new FakeConnection(clock, [10_000])], measuredMs: 1000 });
  expect(told.rowsDue).toBe(30);
  expect(told).toMatchObject({ rowsWithoutChunk: 30, longestGapMs: 1000, latenciesMs: [] });
});

test("one timer serves all robots, which begin at random moments of the spread, the same every time", async () => {
  const clock = new FakeClock();
  const robots = Array.from({ length: 64 }, () => new FakeConnection(clock, [0]));
  let armedMax = 0;
  const told = await figures(clock, { connections: robots, spreadMs: 1000 }, () => {
    // Besides the answers that are under way.
    armedMax = Math.max(armedMax, clock.armed);
  });
  expect(told).toMatchObject({ rowsWithoutChunk: 0, rowsTickedLate: 0 });
  expect(Math.abs(told.rowsDue - 64 * 90)).toBeLessThanOrEqual(64);
  expect(armedMax).toBeLessThanOrEqual(3);
  const begins = robots.map((robot) => robot.captures[0] ?? Number.NaN);
  const sorted = begins.toSorted((a, b) => a - b);
  expect(begins).not.toEqual(sorted);
  expect(sorted[0]).toBeLessThan(100);
  expect(sorted.at(-1)).toBeGreaterThan(900);
  expect(sorted.at(-1)).toBeLessThanOrEqual(1001);
  // Some meet, like real ones: evenly spaced ones, 16 ms apart, never would.
  expect(sorted.filter((ms, index) => ms - (sorted[index - 1] ?? -100) < 5).length).toBeGreaterThan(4);
  const other = new FakeClock();
  const second = robots.map(() => new FakeConnection(other, [0]));
  await figures(other, { connections: second, spreadMs: 1000 });
  expect(second.map((robot) => robot.captures[0])).toEqual(begins);
});

test("with a fixed number of rows a slow service makes rows late, however steady it is; an adaptive robot hides it", async () => {
  const outcome = async (rowsAhead: number | "adaptive", latencyMs: number) => {
    const clock = new FakeClock();
    return await figures(clock, { connections: [new FakeConnection(clock, [latencyMs])], rowsAhead, warmupMs: 3000 });
  };
  // Three rows are left: the first tick without any comes four periods, 133 ms, after the capture.
  const inTime = await outcome(3, 100);
  expect(inTime.rowsWithoutChunk).toBe(0);
  const late = await outcome(3, 500);
  expect(late.rowsWithoutChunk).toBeGreaterThan(20);
  const hidden = await outcome("adaptive", 500);
  expect(hidden.rowsWithoutChunk).toBe(0);
  // What it pays: the last row of a chunk is as old as the chunk is long, and as early as it was asked for.
  const oldest = (told: LoopFigures) => Math.max(...told.observationAgesMs);
  expect(oldest(inTime)).toBeGreaterThan(ROWS * PERIOD_MS);
  expect(oldest(inTime)).toBeLessThan((ROWS + 4) * PERIOD_MS);
  expect(oldest(hidden)).toBeGreaterThan((ROWS + 15) * PERIOD_MS);
});

test("a refusal ends the loop and is its outcome", async () => {
  const clock = new FakeClock();
  const refusal = new Problem("session_expired: the session has ended");
  const connections = [new FakeConnection(clock, [40]), new FakeConnection(clock, [40, refusal])];
  expect(await play(clock, { connections })).toBe(refusal);
  expect(clock.armed).toBeLessThanOrEqual(1);
});

test("after a refusal nobody asks any more, not even a robot whose first chunk comes then", async () => {
  const clock = new FakeClock();
  const refusal = new Problem("session_expired: the session has ended");
  const late = new FakeConnection(clock, [3000]);
  const connections = [new FakeConnection(clock, [40, refusal]), late];
  const spreadMs = 1600;
  expect(await play(clock, { connections, spreadMs })).toBe(refusal);
  const asked = late.observations.length;
  expect(asked).toBe(1);
  for (let ms = 0; ms < 5000; ms += 1) {
    clock.advance(1);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  }
  expect(late.observations).toHaveLength(asked);
  expect(clock.armed).toBe(0);
});
