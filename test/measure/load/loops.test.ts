import { expect, test } from "bun:test";
import { closedLoop, openLoop } from "../../../src/measure/load/loops.ts";
import { errorsText } from "../../../src/measure/load/tally.ts";
import { percentile } from "../../../src/measure/stats.ts";
import { Problem } from "../../../src/std/problem.ts";
import { FakeService } from "./play.ts";

/** A service that answers after 9 ms, but nothing at all between the seconds 1 and 2. */
function standsStill(): FakeService {
  return new FakeService((sentMs) => ({ ms: sentMs >= 1000 && sentMs < 2000 ? 2010 - sentMs : 9 }));
}

test("an open loop charges a service that stands still with every request that was due meanwhile; a closed one with a single one", async () => {
  const open = standsStill();
  const figures = await open.play(openLoop({ clock: open.clock, perSecond: 100, seconds: 4, sender: open }));
  if (figures instanceof Problem) throw new Error(figures.message);
  expect(figures.requests).toBe(400);
  expect(figures.chunks).toBe(400);
  // A quarter of the requests waited, from 1010 ms down to 20 ms.
  expect(percentile(figures.latenciesMs, 50)).toBeCloseTo(9, 0);
  expect(percentile(figures.latenciesMs, 90)).toBeGreaterThan(550);
  expect(percentile(figures.latenciesMs, 99)).toBeGreaterThan(950);
  expect(figures.latenciesMs.at(-1)).toBe(1010);
  // All but the one that took over a second.
  expect(figures.goodPerSecond * figures.seconds).toBeCloseTo(399, 6);
  // One robot is enough until the service stands still; then one more joins for each request that is due until the first is answered.
  expect(figures.robots).toBe(101);
  expect(open.overlapsMax).toBe(1);

  const closed = standsStill();
  const hidden = await closed.play(closedLoop({ clock: closed.clock, robots: 1, seconds: 4, sender: closed }));
  if (hidden instanceof Problem) throw new Error(hidden.message);
  expect(percentile(hidden.latenciesMs, 99)).toBeCloseTo(9, 0);
  expect(hidden.latenciesMs.at(-1)).toBeGreaterThan(900);
});

test("requests of an open loop are due at fixed times; what is late is the load generator's own lateness and part of the latency", async () => {
  const service = new FakeService(() => ({ ms: 3 }));
  const figures = await service.play(openLoop({ clock: service.clock, perSecond: 200, seconds: 1, sender: service }));
  if (figures instanceof Problem) throw new Error(figures.message);
  expect(service.requests.map(({ sentMs }) => sentMs)).toEqual(Array.from({ length: 200 }, (_, at) => at * 5));
  expect(figures.sendLatenessMs.at(-1)).toBe(0);
  expect(figures.robots).toBe(1);
});

test("refusals are counted by code and have no latency; a robot of a closed loop pauses after one", async () => {
  const service = new FakeService((_, robot) => (robot === 1 ? { ms: 0, code: "engine_unavailable" } : { ms: 10 }));
  const figures = await service.play(closedLoop({ clock: service.clock, robots: 2, seconds: 1, sender: service }));
  if (figures instanceof Problem) throw new Error(figures.message);
  const refused = figures.errors.engine_unavailable ?? 0;
  expect(refused).toBeGreaterThanOrEqual(9);
  expect(refused).toBeLessThanOrEqual(11);
  expect(figures.latenciesMs.length).toBe(figures.chunks);
  expect(figures.requests).toBe(figures.chunks + refused);
  expect(errorsText(figures.errors)).toBe(`engine_unavailable ×${refused}`);
});

test("a load without one chunk is the problem that it met", async () => {
  const service = new FakeService(() => ({ ms: 1, code: "insufficient_credit" }));
  const outcome = await service.play(openLoop({ clock: service.clock, perSecond: 10, seconds: 1, sender: service }));
  expect(outcome).toMatchObject({ message: "insufficient_credit: on purpose" });
});
