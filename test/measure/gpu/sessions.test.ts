/** How many sessions fit is searched for: an engine that takes so many and no more stands for a device. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { readBundle } from "../../../src/bundle/read.ts";
import type { Engine, LoadOptions, Model, Observation } from "../../../src/engine/engine.ts";
import { observationsOf } from "../../../src/measure/gpu/observations.ts";
import { sessionsOf } from "../../../src/measure/gpu/sessions.ts";
import { ROBOT } from "../../../src/robot/errors.ts";
import { Failure } from "../../../src/std/failure.ts";
import { Problem } from "../../../src/std/problem.ts";

const bundle = await readBundle(join(import.meta.dir, "../../../dist/models/picasso-yam"));
if (bundle instanceof Problem) throw new Error(bundle.message);
const episode = await observationsOf(bundle);
const { manifest } = bundle;

/** What was loaded, and how many sessions had their turns. */
interface Tried {
  readonly slots: number;
  turns: number;
}

/** It loads `loads` sessions at most, and runs the turns of `runs` at most. */
function device(loads: number, runs = loads): { engine: Engine; tried: Tried[] } {
  const tried: Tried[] = [];
  const load = async ({ slots = 0 }: LoadOptions) => {
    const one = { slots, turns: 0 };
    tried.push(one);
    if (slots > loads) return new Failure(ROBOT.engine_unavailable, "out of memory");
    const observe = ({ slot = 0, step }: Observation) => {
      if (slot >= runs) return new Failure(ROBOT.engine_unavailable, "no memory to run");
      if (step > 0) one.turns += 1;
      const micros = { prefill: 1000, denoise: 2000, encode: 10 };
      const result = Promise.resolve({ micros, batch: 1, cacheReset: false });
      return { result, released: Promise.resolve(), decodeMs: 0, modelMs: 3, commit: () => {}, abort: () => {} };
    };
    const framePut = () => ({ decoded: async () => undefined });
    return { manifest, framePut, observe, unload: async () => {} } as unknown as Model;
  };
  return { engine: { load } as unknown as Engine, tried };
}

async function found({ engine }: { engine: Engine }, most = 4096) {
  const options = {
    bundle: bundle as Exclude<typeof bundle, Problem>,
    device: "cpu",
    replicas: 1,
    threads: 1,
    slots: 1,
  };
  const done = await sessionsOf(engine, options, episode, most);
  if (done instanceof Problem) throw new Error(done.message);
  return { ...done, counts: done.counts.map(({ sessions }) => sessions) };
}

test("after the first refusal the limit is searched for, until it is known to a tenth", async () => {
  for (const limit of [1, 2, 3, 4, 5, 15, 17, 37, 63, 100, 255, 300, 1000]) {
    const played = device(limit);
    const { counts, refused = 0, end } = await found(played);
    const fit = counts.at(-1) ?? 0;
    expect(fit).toBeLessThanOrEqual(limit);
    expect(refused).toBeGreaterThan(limit);
    expect(refused - fit).toBeLessThanOrEqual(Math.max(1, fit / 10));
    expect(end).toBe(`${refused} sessions: refused, out of memory`);
    expect(counts).toEqual([...new Set(counts)].sort((one, other) => one - other));
    // The search has a bound, and gives turns to one session alone; the limit that it found is measured as the others are.
    const powers = counts.filter((count) => Number.isInteger(Math.log2(count) / 2)).length;
    expect(played.tried.length).toBeLessThanOrEqual(powers + 1 + 6 + 1);
    for (const { slots, turns } of played.tried) {
      expect([slots, [0, 1, slots].includes(turns)]).toEqual([slots, true]);
      if (counts.includes(slots))
        expect(played.tried.some((one) => one.slots === slots && one.turns === slots)).toBe(true);
    }
  }
});

test("as many as are asked for need no search", async () => {
  const played = device(100);
  expect(await found(played, 20)).toEqual({
    counts: [1, 4, 16, 20],
    refused: undefined,
    end: "as many as were asked for",
  });
  expect(played.tried.map(({ slots }) => slots)).toEqual([1, 4, 16, 20]);
});

test("sessions that are loaded and do not run do not fit either", async () => {
  const { counts, refused, end } = await found(device(1000, 10));
  expect(counts).toEqual([1, 4, 10]);
  expect(refused).toBe(11);
  expect(end).toMatch(/^\d+ sessions: loaded, and did not run, .*no memory to run/);
});

test("a model that cannot be loaded for one session is a problem", async () => {
  const { engine } = device(0);
  const options = {
    bundle: bundle as Exclude<typeof bundle, Problem>,
    device: "cpu",
    replicas: 1,
    threads: 1,
    slots: 1,
  };
  expect(await sessionsOf(engine, options, episode, 4)).toMatchObject({ message: "1 session: refused, out of memory" });
});
