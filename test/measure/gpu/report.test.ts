/** The report of a measurement that no machine of a test can make: times by events, a socket. */
import { expect, test } from "bun:test";
import { gpuOptions } from "../../../src/config/gpu.ts";
import { gpuReport } from "../../../src/measure/gpu/report.ts";
import type { Batch, GpuMeasurement } from "../../../src/measure/gpu/suite.ts";
import type { Report } from "../../../src/measure/report.ts";
import { summary } from "../../../src/measure/stats.ts";
import { present } from "../../../src/std/assert.ts";
import { type Figure, from } from "../origin.ts";

const NO_KERNELS = { kernels: false, kernelsReason: undefined };

function batch(size: number): Batch {
  const round = { decode: 3, prefill: 8 * size, denoise: 10 * size, encode: 0.1, model: 20 * size };
  return { asked: size, batch: size, rounds: [round, round, round], allocationsPerChunk: 0 };
}

const measurement: GpuMeasurement = {
  ...{
    model: "a/b",
    device: "cuda:0",
    robots: 1,
    reference: true,
    weights: "bf16",
    steps: 10,
    flow: "captured",
    refused: [],
    loadMs: 9000,
  },
  parity: { differences: [3e-4, 0.07], bound: 0.2, tolerance: 0.05 },
  ...{ deviceBytes: 5e7, copies: { toDevice: 1_800_000, fromDevice: 12_800 }, gpu: gpuOptions({ cuda_graph: true }) },
  driver: {
    registeredBytes: 2_000_000,
    registrationReason: undefined,

    timesReason: "cuStreamCreate: why",
    kernels: false,
    kernelsReason: undefined,
  },
  deviceWeights: { sharedBytes: 6.7e9, copiedBytes: 0, ownBytes: 0, reason: undefined },
  ...{ chunkPlaysMs: 1000, batches: [batch(1), batch(8)] },
  socket: { together: summary([19, 20, 21]), framesBefore: summary([18, 18.5, 19]) },
};

function figuresIn({ json }: Report): readonly Figure[] {
  const { measurements } = JSON.parse(JSON.stringify(json)) as { measurements: { figures: Figure[] }[] };
  return measurements[0]?.figures ?? [];
}

function parts(report: Report): string[] {
  return figuresIn(report).map(({ part }) => part);
}

test("every figure is there with its unit, and so is what it is compared with", () => {
  const { text } = gpuReport(from, [measurement]);
  for (const part of [
    "abc1234",
    "a/b on cuda:0, marked reference (random weights",
    /cuda_graph\strue/,
    /rows\sdiffer\sby\sat\smost\s7\.0e-2,\sbound\s2\.0e-1\s\(--within,\sin\splace\sof\sthe\sbundle's\s5\.0e-2,\swith\swhich\sno\sservice/,
    /1800 kB to it and 13 kB\sback a chunk/,
    "6700.0 MB of weights on the device once for all sessions",
    /^ +batch 1 +batch 8$/m,
    /^prefill p50_ms +8 +64$/m,
    // 1 / 20 ms, each playing a second.
    /^model chunks_per_second +50 +50$/m,
    /^model robots_fed +50 +50$/m,
    /^socket frames with it max_ms +21 *$/m,
    "wall clock of the thread",
    "Outside the window",
  ])
    expect(text).toMatch(part);
});

test("where events tell it, the device's part of a station and the host's part of a chunk have rows", () => {
  const without = gpuReport(from, [measurement]);
  expect(without.text).toContain("No device times: cuStreamCreate: why.");
  expect(parts(without)).not.toContain("host");
  expect(parts(without)).not.toContain("device prefill");
  const timed = (size: number): Batch => {
    const rounds = [1, 2, 3].map((host) => ({
      ...present(batch(size).rounds[0], "a round"),
      onDevice: { prefill: 5 * size, denoise: 10 * size, host: host / 10 },
    }));
    return { ...batch(size), rounds };
  };
  const driver = { registeredBytes: 2_000_000, registrationReason: "why", timesReason: undefined, ...NO_KERNELS };
  const report = gpuReport(from, [{ ...measurement, driver, batches: [timed(1), timed(8)] }]);
  const { text } = report;
  for (const part of [
    /^device prefill p50_ms +5 +40$/m,
    /^device denoise p99_ms +10 +80$/m,
    /^host p50_ms +0\.2000 +0\.2000$/m,
    /^host p99_ms +0\.3000 +0\.3000$/m,
    /2000\skB\sof\sthe\shost's\sregistered;\sno\smore\sregistered:\swhy/,
  ])
    expect(text).toMatch(part);
  expect(text).not.toContain("No device times");
  const figures = figuresIn(report);
  expect(figures).toContainEqual({ part: "host", batch: 1, figure: "p50_ms", value: 0.2 });
  expect(figures).toContainEqual({ part: "device denoise", batch: 8, figure: "p99_ms", value: 80 });
  const refused = { ...driver, timesReason: "cuStreamCreate: no room" };
  expect(gpuReport(from, [{ ...measurement, driver: refused }]).text).toContain(
    "No device times: cuStreamCreate: no room.",
  );
  // A device that is no NVIDIA GPU is not asked for any.
  expect(gpuReport(from, [{ ...measurement, driver: undefined }]).text).not.toContain("No device times");
});

test("JSON has each figure once, by part and size of the batch", () => {
  const figures = figuresIn(gpuReport(from, [measurement]));
  expect(figures).toContainEqual({ part: "socket frames with it", batch: 1, figure: "p99_ms", value: 21 });
  expect(figures).toContainEqual({ part: "parity", batch: 1, figure: "difference_max", value: 0.07 });
  expect(figures).toContainEqual({ part: "parity", batch: 1, figure: "tolerance", value: 0.05 });
  const names = figures.map((figure) => JSON.stringify({ ...figure, value: 0 }));
  expect(new Set(names).size).toBe(names.length);
});

test("what was not measured is said, not left out", () => {
  const lacking: GpuMeasurement = {
    ...measurement,
    socket: "not served: nobody has computed its rows",
    batches: [batch(1), { ...batch(2), rounds: [], batch: 1 }],
  };
  const { text } = gpuReport(from, [lacking]);
  for (const part of ["Of 2 observations at once cuda:0 ran 1 together", "not served: nobody has computed its rows"]) {
    expect(text).toContain(part);
  }
  const unproved = gpuReport(from, [{ ...measurement, parity: undefined }]);
  expect(unproved.text).toMatch(/nobody\shas\scomputed\sits\srows/);
  expect(parts(unproved)).not.toContain("parity");
  const held = { differences: [3e-4], bound: 0.05, tolerance: 0.05 };
  expect(gpuReport(from, [{ ...measurement, parity: held }]).text).toMatch(/3\.0e-4,\sbound\s5\.0e-2;/);
});
