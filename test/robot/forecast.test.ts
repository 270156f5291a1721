/** Refusals of chunks that would come too late, and the estimate that they follow from. */
import { describe, expect, test } from "bun:test";
import { type Demand, Forecast, type InFlight } from "../../src/robot/forecast.ts";
import { Failure } from "../../src/std/failure.ts";
import { RandomStream } from "../../src/std/random.ts";
import { FakeClock } from "../std/fake-clock.ts";

const ONE: Demand = { accountId: "a", model: "m", replicas: 1 };
const other = (accountId: string, replicas = 1): Demand => ({ ...ONE, accountId, replicas });

/** Longer than any wait. */
const LONG_MS = 1e9;

class Line {
  readonly clock = new FakeClock();
  readonly forecast = new Forecast(this.clock);

  enter(asked: Demand = ONE, leftMs = LONG_MS): InFlight {
    const entry = this.forecast.enter(asked, leftMs);
    if (entry instanceof Failure) throw new Error(entry.message);
    return entry;
  }

  /** `count` observations, one after the other, each of which the model answers in `ms`. */
  answer(count: number, ms: number, asked: Demand = ONE): void {
    for (let n = 0; n < count; n += 1) {
      const entry = this.enter(asked);
      this.run(entry, ms);
    }
  }

  /** The model works on the observation for `ms`. */
  run(entry: InFlight, ms: number): void {
    const startedMs = this.clock.monotonicMs();
    this.clock.advance(ms);
    entry.computed(startedMs);
    entry.leave();
  }

  /** An observation with this much time is refused; one that is let in does not stay. */
  refuses(leftMs: number, asked: Demand = ONE): boolean {
    const entry = this.forecast.enter(asked, leftMs);
    if (!(entry instanceof Failure)) entry.leave();
    return entry instanceof Failure;
  }

  /** The shortest time with which an observation is let in, to a hundredth of a millisecond. */
  needs(asked: Demand = ONE): number {
    let [low, high] = [0, 1e6];
    while (high - low > 0.01) {
      const middle = (low + high) / 2;
      if (this.refuses(middle, asked)) low = middle;
      else high = middle;
    }
    return high;
  }
}

/** An observation needs a quarter more than its wait and its inference take. */
const withMargin = (ms: number) => ms / 0.8;

describe("an observation is refused", () => {
  test("never while nothing is inside, however little time it has", () => {
    const line = new Line();
    expect(line.refuses(1)).toBe(false);
    line.answer(10, 500);
    expect(line.refuses(1)).toBe(false);
    expect(line.forecast.shed).toBe(0);
  });

  test("never before some answers are known", () => {
    const line = new Line();
    line.answer(1, 5_000);
    const inside = Array.from({ length: 50 }, () => line.enter());
    expect(line.refuses(1)).toBe(false);
    for (const entry of inside) entry.leave();
  });

  test("when those before it and its own inference take longer than it has", () => {
    const line = new Line();
    line.answer(20, 100);
    const inside = [1, 2, 3].map(() => line.enter());
    expect(line.needs()).toBeCloseTo(withMargin(3 * 100 + 100), 1);
    const refusal = line.forecast.enter(ONE, 200);
    if (!(refusal instanceof Failure)) throw new Error("it was let in");
    expect([refusal.code, refusal.retryAfterSeconds, refusal.message]).toEqual([
      "engine_unavailable",
      1,
      "too much is asked of this model: the chunk would be ready in about 400 ms and is of use for 200 ms; nothing ran, retry with a fresh observation",
    ]);
    for (const entry of inside) entry.leave();
    expect([line.forecast.inside, line.refuses(1)]).toEqual([0, false]);
  });

  test("with the wait as Retry-After, in whole seconds, rounded up", () => {
    const line = new Line();
    line.answer(20, 700);
    for (let n = 0; n < 3; n += 1) line.enter();
    const refusal = line.forecast.enter(ONE, 10);
    expect(refusal instanceof Failure && refusal.retryAfterSeconds).toBe(3);
    expect([line.forecast.retryAfterSeconds(ONE), line.forecast.retryAfterSeconds(other("b"))]).toEqual([3, 1]);
    expect(line.forecast.retryAfterSeconds({ ...ONE, model: "unheard of" })).toBe(1);
  });
});

describe("the order", () => {
  test("accounts take turns: an account waits for its own observations, and for as many of another account and one more", () => {
    const line = new Line();
    line.answer(20, 100);
    for (let n = 0; n < 50; n += 1) line.enter();
    expect(line.needs()).toBeCloseTo(withMargin(5_100), 1);
    expect(line.needs(other("b"))).toBeCloseTo(withMargin(200), 1);
    for (let n = 0; n < 2; n += 1) line.enter(other("b"));
    // It waits for its own two, for three of the other account, and for itself.
    expect(line.needs(other("b"))).toBeCloseTo(withMargin(600), 1);
    expect(line.needs(other("c"))).toBeCloseTo(withMargin(300), 1);
  });

  test("each model has its own line", () => {
    const line = new Line();
    line.answer(20, 100);
    for (let n = 0; n < 50; n += 1) line.enter();
    expect(line.refuses(1, { ...ONE, model: "n" })).toBe(false);
  });

  test("as long as a replica is free no observation waits; one robot alone does not make several replicas look slow", () => {
    const line = new Line();
    line.answer(20, 100, other("a", 4));
    for (let n = 0; n < 3; n += 1) line.enter(other("a", 4));
    expect(line.refuses(1, other("a", 4))).toBe(false);
    line.enter(other("a", 4));
    // One answer each 25 ms, and the inference itself.
    expect(line.needs(other("a", 4))).toBeCloseTo(withMargin(125), 1);
    // A replica is lost: more of them wait, for fewer.
    expect(line.needs(other("a", 3))).toBeCloseTo(withMargin(150), 1);
  });
});

describe("the estimate", () => {
  test("is that of a batch: several answers at once count each for its part of the time", () => {
    const line = new Line();
    for (let round = 0; round < 10; round += 1) {
      const batch = Array.from({ length: 8 }, () => line.enter());
      const startedMs = line.clock.monotonicMs();
      line.clock.advance(80);
      for (const entry of batch) {
        entry.computed(startedMs);
        entry.leave();
      }
    }
    for (let n = 0; n < 8; n += 1) line.enter();
    expect(line.needs()).toBeCloseTo(withMargin(8 * 10 + 80), 1);
  });

  test("takes no notice of what was refused, withdrawn or failed, nor of pauses", () => {
    const line = new Line();
    line.answer(20, 100);
    const waits = line.enter();
    line.clock.advance(40);
    waits.leave();
    line.clock.advance(500);
    line.answer(5, 100);
    line.enter();
    expect(line.needs()).toBeCloseTo(withMargin(200), 1);
  });

  test("follows a model that has become slower, and one that has become faster, within twenty answers or a second", () => {
    const line = new Line();
    line.answer(1_000, 5);
    line.answer(20, 100);
    const first = line.enter();
    expect(line.needs()).toBeGreaterThan(withMargin(150));
    first.leave();
    line.answer(200, 5);
    line.enter();
    expect(line.needs()).toBeLessThan(withMargin(20));
  });

  test("heals from one answer that took very long: the next ones are let in as the line empties", () => {
    const line = new Line();
    line.answer(20, 10);
    line.answer(1, 5_000);
    line.answer(200, 10);
    line.enter();
    expect(line.needs()).toBeLessThan(100);
  });

  test("knows nothing after an outage of the store, which says nothing of the model", () => {
    const line = new Line();
    line.answer(20, 10);
    const inside = Array.from({ length: 20 }, () => line.enter());
    line.clock.advance(2_000);
    const [failed, ...rest] = inside;
    failed?.stalled();
    failed?.leave();
    for (const entry of rest) {
      expect(line.refuses(9_000)).toBe(false);
      line.run(entry, 10);
    }
    for (let n = 0; n < 20; n += 1) line.enter();
    expect(line.needs()).toBeCloseTo(withMargin(21 * 10), 1);
  });

  test("is forgotten after a pause", () => {
    const line = new Line();
    line.answer(20, 100);
    line.clock.advance(60_000);
    for (let n = 0; n < 50; n += 1) line.enter();
    expect(line.refuses(1)).toBe(false);
  });
});

test("random histories leave no observation inside, and an idle forecast lets every one in", () => {
  const random = new RandomStream("forecast");
  const below = (limit: number) => random.word() % limit;
  for (let history = 0; history < 50; history += 1) {
    const line = new Line();
    const inside: InFlight[] = [];
    for (let step = 0; step < 300; step += 1) {
      line.clock.advance(below(50));
      if (below(2) === 0) {
        const entry = line.forecast.enter(other(`account ${below(4)}`, 1 + below(3)), below(500));
        if (!(entry instanceof Failure)) inside.push(entry);
        continue;
      }
      const [entry] = inside.splice(below(inside.length + 1), 1);
      if (below(3) > 0) entry?.computed(line.clock.monotonicMs() - below(20));
      entry?.leave();
      entry?.leave();
    }
    for (const entry of inside) entry.leave();
    expect([line.forecast.inside, line.refuses(0)]).toEqual([0, false]);
  }
});
