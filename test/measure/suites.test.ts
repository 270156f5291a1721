/** Every suite of `tendon bench`, small, against a fresh service: nothing is judged by the clock. */
import { expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { chunkReport } from "../../src/measure/chunk/report.ts";
import { runChunkSuite } from "../../src/measure/chunk/suite.ts";
import { episodeReport } from "../../src/measure/episode/report.ts";
import { runEpisodeSuite } from "../../src/measure/episode/suite.ts";
import { gpuReport } from "../../src/measure/gpu/report.ts";
import { runGpuSuite } from "../../src/measure/gpu/suite.ts";
import { httpReport } from "../../src/measure/http/report.ts";
import { runHttpSuite } from "../../src/measure/http/suite.ts";
import type { Report } from "../../src/measure/report.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { armBundle, seventhBundle } from "../bundle/seventh.ts";
import { type Figure, figureIn, from } from "./origin.ts";

const echo = { devices: ["echo"], robots: [1] };

function measured<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) throw new Error(outcome.message);
  return outcome;
}

interface Told {
  readonly suite: string;
  readonly measurements: readonly Record<string, unknown>[];
}

/** What all forms of a report must have in common; its measurements as JSON has them. */
function checked(report: Report): Told["measurements"] {
  const { suite, measurements } = JSON.parse(JSON.stringify(report.json)) as Told;
  for (const part of [`tendon bench ${suite}`, "abc1234", "2 cores"]) expect(report.text).toContain(part);
  for (const line of report.text.split("\n")) expect(line.length).toBeLessThanOrEqual(180);
  return measurements;
}

test("http: closed and open loops have latencies and rates each", async () => {
  const plan = { ...echo, robots: [2], seconds: 0.3, rates: [20], warmupRequests: 2 };
  const told = checked(httpReport(from, measured(await runHttpSuite(plan))));
  expect(told).toMatchObject([
    { loop: "closed", robots: 2, due_per_second: null, errors: "", reference: true },
    { loop: "open", due_per_second: 20, requests: 6, errors: "" },
  ]);
  for (const one of told) {
    for (const name of ["p50_ms", "p99_ms", "p99.9_ms", "max_ms", "chunks_per_second", "good_per_second"]) {
      expect(one[name], name).toBeGreaterThan(0);
    }
  }
}, 60_000);

test("gpu: the stations of each bundle on a CPU, over a socket where its rows are computed", async () => {
  const plan = { devices: ["cpu"], chunks: 2, batchMax: 8, gpu: {} };
  const models = (name: string) => join(import.meta.dir, "../../dist/models", name);
  const stateless = measured(await runGpuSuite({ ...plan, models: models("molmoact2-yam") }));
  const stateful = measured(await runGpuSuite({ ...plan, models: models("picasso-yam") }));
  const told = checked(gpuReport(from, [...stateless, ...stateful]));
  expect(told).toMatchObject([
    { model: "vendorB/molmoact2:yam", device: "cpu", weights: "f32", reference: true },
    { model: "vendorF/picasso:yam" },
  ]);
  for (const one of told) {
    const figure = figureIn(one.figures as Figure[]);
    for (const station of ["decode", "prefill", "denoise", "model", "socket frames with it", "socket frames before"])
      expect([station, Number(figure(station, "p50_ms")) > 0]).toEqual([station, true]);
    expect(figure("model", "allocations_per_chunk")).toBe(0);
  }
  // A CPU runs one observation at a time.
  expect(stateless[0]?.batches.map(({ asked, batch }) => [asked, batch])).toEqual([
    [1, 1],
    [2, 1],
  ]);
}, 120_000);

test("chunk: the five stations, the rest and the client's time of each number of robots", async () => {
  const told = checked(chunkReport(from, measured(await runChunkSuite({ ...echo, robots: [1, 2], chunks: 4 }))));
  expect(told.map(({ robots }) => robots)).toEqual([1, 2]);
  for (const one of told) {
    const ms = one.ms as Readonly<Record<string, readonly number[]>>;
    expect(Object.keys(ms)).toEqual(["decode", "queue", "prefill", "denoise", "encode", "rest", "client"]);
    for (const times of Object.values(ms)) expect(times).toHaveLength(4);
  }
}, 60_000);

test("chunk: a robot that is not a YAM, and one whose later observations have more frames", async () => {
  for (const bundle of [await armBundle(), await seventhBundle("world-action")]) {
    const { manifest, paths } = bundle;
    const models = dirname(dirname(present(paths.get(manifest.norm), "a file of the bundle")));
    const plan = { ...echo, chunks: 2, models, model: manifest.id };
    expect(measured(await runChunkSuite(plan))).toMatchObject([
      { model: manifest.id, device: "echo", robots: 1, chunks: 2 },
    ]);
  }
  const unknown = await runChunkSuite({ ...echo, chunks: 1, model: "lab/none" });
  expect(unknown).toMatchObject({ message: expect.stringContaining("lab/none") });
}, 60_000);

test("episode: what was due, what was late and the longest gap of each loop", async () => {
  const told = checked(episodeReport(from, measured(await runEpisodeSuite({ ...echo, robots: [2], seconds: 2 }))));
  expect(told).toMatchObject([{ model: "vendorB/molmoact2:yam", device: "echo", robots: 2, seconds: 2 }]);
  for (const arm of ["service", "control"]) {
    const loop = told[0]?.[arm] as Record<string, number>;
    // 60 rows of two robots, where a deadline may fall on either side of an end.
    expect(Math.abs((loop.rows_due ?? 0) - 120)).toBeLessThanOrEqual(2);
    expect(loop.chunks).toBeGreaterThanOrEqual(2);
    expect(loop.rows_late).toBe((loop.rows_without_chunk ?? 0) + (loop.rows_ticked_late ?? 0));
    expect(loop.longest_gap_ms).toBeGreaterThan(33);
  }
}, 60_000);
