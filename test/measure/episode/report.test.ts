import { expect, test } from "bun:test";
import type { LoopFigures } from "../../../src/measure/episode/loop-robot.ts";
import { type EpisodeMeasurement, episodeReport } from "../../../src/measure/episode/report.ts";
import { from } from "../origin.ts";

const service: LoopFigures = {
  latenciesMs: [12, 10, 30.25],
  rowsDue: 2400,
  rowsWithoutChunk: 5,
  rowsTickedLate: 1,
  longestGapMs: 201.5,
  tickLatenessMs: [0.5, 1, 41],
  observationAgesMs: [100, 600.5, 1100],
};
const control: LoopFigures = { ...service, rowsWithoutChunk: 0, rowsTickedLate: 0, longestGapMs: 34.4 };
const measurement: EpisodeMeasurement = {
  ...{ model: "a/b", device: "echo", robots: 8, seconds: 10, reference: true },
  ...{ service, control },
};

test("the report tells chunk latency, rows late by their cause and the longest gap, of the service and of the idle control", () => {
  const text = episodeReport(from, [measurement]).text;
  for (const line of [
    "a/b on echo, marked reference (random weights, or no model): robots 8, 10 s",
    /^chunk latency p50, ms +12\.0 +-$/m,
    /^chunk latency max, ms +30\.3 +-$/m,
    /^rows due +2400 +2400$/m,
    /^rows late +6 +0$/m,
    /^ +no chunk +5 +0$/m,
    /^ +late tick +1 +0$/m,
    /^rows late, % +0\.250 +0\.000$/m,
    /^longest gap between commands, ms +201\.5 +34\.4$/m,
    /^observation age p50, ms +600\.5 +600\.5$/m,
    "hides any latency below a chunk's length",
    /^tick lateness max, ms +41\.0 +41\.0$/m,
  ]) {
    expect(text).toMatch(line);
  }
  for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(140);
});

test("JSON has the same figures; what was not measured is null, and a dash in the table", () => {
  const silent = { ...measurement, service: { ...service, latenciesMs: [] } };
  const json = JSON.parse(JSON.stringify(episodeReport(from, [silent]).json)) as {
    measurements: Record<string, object>[];
  };
  expect(json.measurements[0]?.service).toMatchObject({
    ...{ chunks: 0, chunk_latency_p50_ms: null, rows_late: 6, late_share: 0.0025 },
  });
  expect(json.measurements[0]?.control).toMatchObject({ chunk_latency_p50_ms: 12, late_share: 0 });
  expect(episodeReport(from, [silent]).text).toMatch(/^chunk latency p99, ms +- +-$/m);
});
