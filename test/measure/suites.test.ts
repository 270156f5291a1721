/** Every suite of `tendon bench`, small, against a service of its own: nothing is judged by the clock. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { burstReport } from "../../src/measure/burst/report.ts";
import { runBurstSuite } from "../../src/measure/burst/suite.ts";
import { chunkReport } from "../../src/measure/chunk/report.ts";
import { runChunkSuite } from "../../src/measure/chunk/suite.ts";
import { gpuReport } from "../../src/measure/gpu/report.ts";
import { runGpuSuite } from "../../src/measure/gpu/suite.ts";
import { httpReport } from "../../src/measure/http/report.ts";
import { runHttpSuite } from "../../src/measure/http/suite.ts";
import { KIND_NAMES } from "../../src/measure/interference/kinds.ts";
import { interferenceReport } from "../../src/measure/interference/report.ts";
import { runInterferenceSuite } from "../../src/measure/interference/suite.ts";
import { llmReport } from "../../src/measure/llm/report.ts";
import { runLlmSuite } from "../../src/measure/llm/suite.ts";
import { memoryReport } from "../../src/measure/memory/report.ts";
import { runMemorySuite } from "../../src/measure/memory/suite.ts";
import type { Report } from "../../src/measure/report.ts";
import { runsReport } from "../../src/measure/runs/report.ts";
import { runRunsSuite } from "../../src/measure/runs/suite.ts";
import { scaleReport } from "../../src/measure/scale/report.ts";
import { doublings, runScaleSuite } from "../../src/measure/scale/suite.ts";
import { startReport } from "../../src/measure/start/report.ts";
import { runStartSuite } from "../../src/measure/start/suite.ts";
import { Problem } from "../../src/std/problem.ts";
import { from } from "./origin.ts";

const echo = { devices: ["echo"], robots: [1] };

function measured<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) throw new Error(outcome.message);
  return outcome;
}

interface Told {
  readonly suite: string;
  readonly measurements: readonly Record<string, unknown>[];
}

interface Figure {
  readonly part: string;
  readonly batch: number;
  readonly figure: string;
  readonly value: number | null;
}

/** What all forms of a report must have in common; its measurements as JSON has them. */
function checked(report: Report): Told["measurements"] {
  const { suite, measurements } = JSON.parse(JSON.stringify(report.json)) as Told;
  const [head, ...lines] = report.csv.trimEnd().split("\n");
  const cells = (line = "") => line.replace(/"[^"]*"/g, "x").split(",");
  expect(lines.length).toBeGreaterThanOrEqual(measurements.length);
  for (const line of lines) expect(cells(line)).toHaveLength(cells(head).length);
  expect(new Set(cells(head)).size).toBe(cells(head).length);
  for (const part of [`tendon bench ${suite}`, "abc1234", "2 cores", "utside the window"]) {
    expect(report.text).toContain(part);
  }
  for (const line of report.text.split("\n")) expect(line.length).toBeLessThanOrEqual(180);
  expect(report.html).toStartWith("<!doctype html>");
  // Nothing is fetched and nothing runs.
  expect(report.html).not.toMatch(/<script|<link|<img|https?:|url\(|NaN|Infinity|undefined/);
  expect(report.html).toContain("abc1234");
  return measurements;
}

test("http: closed and open loops have latencies, rates and a distribution each", async () => {
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
    expect((one.latency as object[]).at(-1)).toMatchObject({ share: 1 });
  }
}, 60_000);

test("scale: each number of robots has the processor time of a chunk, those of the event loop and of the decode parts of it", async () => {
  const plan = { ...echo, robots: doublings(2), seconds: 0.3, warmupRequests: 2 };
  const told = checked(scaleReport(from, measured(await runScaleSuite(plan))));
  expect(told.map(({ robots }) => robots)).toEqual([1, 2]);
  for (const one of told) {
    expect(one.loop_ms_per_chunk).toBeGreaterThan(0);
    expect(one.decode_ms_per_chunk).toBeGreaterThan(0);
    const parts = Number(one.loop_ms_per_chunk) + Number(one.decode_ms_per_chunk);
    expect(one.processor_ms_per_chunk).toBeGreaterThan(parts);
    expect(one.resident_mib).toBeGreaterThan(1);
  }
}, 60_000);

test("scale goes by doublings up to the number that was asked for", () => {
  expect(doublings(1)).toEqual([1]);
  expect(doublings(6)).toEqual([1, 2, 4, 6]);
  expect(doublings(64)).toEqual([1, 2, 4, 8, 16, 32, 64]);
});

test("burst: the first answer is before the last", async () => {
  const plan = { ...echo, robots: [4], bursts: 2, silenceMs: 1, warmupRequests: 2 };
  const [one] = checked(burstReport(from, measured(await runBurstSuite(plan))));
  expect(one).toMatchObject({ robots: 4, bursts: 2, errors: "" });
  expect(one?.first_ms).toBeGreaterThan(0);
  expect(one?.all_ms).toBeGreaterThanOrEqual(Number(one?.first_ms));
}, 60_000);

test("start: cold and warm, ready and the first requests", async () => {
  const plan = { ...echo, rounds: 1, requests: 12 };
  const told = checked(startReport(from, measured(await runStartSuite(plan))));
  expect(told.map(({ start }) => start)).toEqual(["cold", "warm"]);
  for (const one of told) {
    for (const name of ["ready_ms", "first_ms", "tenth_ms", "last_ms", "first_to_last"])
      expect(one[name], name).toBeGreaterThan(0);
  }
}, 60_000);

test("memory: batches of sockets and of HTTP sessions, each from where the one before ended", async () => {
  const plan = { ...echo, sessions: 5, requestsBefore: 2, readingMs: 1 };
  const told = checked(memoryReport(from, measured(await runMemorySuite(plan))));
  expect(told.map(({ kind, batch }) => `${kind} ${batch}`)).toEqual([
    "socket first",
    "socket second",
    "http control: one session",
    "http first",
    "http second",
  ]);
  for (const one of told) expect(one.each_kb).toBeNumber();
  expect(told[1]?.before_mib).toBe(told[0]?.after_mib);
}, 60_000);

test("interference: the robot alone twice and beside each kind of work, none of which fails", async () => {
  const plan = { ...echo, rounds: 1, armSeconds: 0.3, warmupRequests: 2, settleMs: 1 };
  const told = checked(interferenceReport(from, measured(await runInterferenceSuite(plan))));
  expect(told.map(({ beside }) => beside)).toEqual(["alone", "alone again", ...KIND_NAMES]);
  for (const one of told) {
    expect(one.p99_to_alone).toBeGreaterThan(0);
    if (String(one.beside).startsWith("alone")) continue;
    expect(one.work_per_second).toBeGreaterThan(0);
    expect(one.work_failed, String(one.beside)).toBe(0);
  }
}, 60_000);

test("llm: calls to the provider itself and through the service, plain and as a stream", async () => {
  const told = checked(llmReport(from, measured(await runLlmSuite({ ...echo, calls: 3, warmupCalls: 1 }))));
  expect(told.map(({ form, path }) => `${form} ${path}`)).toEqual([
    "plain direct",
    "plain through",
    "stream direct",
    "stream through",
  ]);
  for (const one of told) {
    expect(one.calls).toBe(3);
    expect(one.first_p50_ms).toBeGreaterThan(0);
    expect(one.max_ms).toBeGreaterThanOrEqual(Number(one.first_p50_ms));
    expect(one.first_added_ms === null).toBe(one.path === "direct");
  }
}, 60_000);

test("runs: files of each size, one at a time and four at once", async () => {
  const told = checked(runsReport(from, measured(await runRunsSuite({ ...echo, files: 4, fileBytes: [4096] }))));
  expect(told).toMatchObject([
    { file_bytes: 4096, at_once: 1, files: 4 },
    { file_bytes: 4096, at_once: 4, files: 4 },
  ]);
  for (const one of told) {
    for (const name of ["mb_per_second", "p50_ms", "processor_ms_per_mb"]) expect(one[name], name).toBeGreaterThan(0);
  }
}, 60_000);

test("gpu: stations, work and sessions of each bundle on a CPU, over a socket where its rows are computed", async () => {
  const plan = { devices: ["cpu"], chunks: 2, batchMax: 8, slotsMax: 5, gpu: {} };
  const models = (name: string) => join(import.meta.dir, "../../dist/models", name);
  const stateless = measured(await runGpuSuite({ ...plan, models: models("molmoact2-yam") }));
  const stateful = measured(await runGpuSuite({ ...plan, models: models("picasso-yam") }));
  const told = checked(gpuReport(from, [...stateless, ...stateful]));
  expect(told).toMatchObject([
    { model: "vendorB/molmoact2:yam", device: "cpu", weights: "f32", reference: true, unknown: [] },
    { model: "vendorF/picasso:yam", sessions_end: "as many as were asked for" },
  ]);
  for (const one of told) {
    const figure = (part: string, name: string) =>
      (one.figures as Figure[]).find((other) => other.part === part && other.figure === name && other.batch === 1)
        ?.value;
    for (const station of ["decode", "prefill", "denoise", "model", "socket frames with it", "socket frames before"])
      expect([station, Number(figure(station, "p50_ms")) > 0]).toEqual([station, true]);
    for (const station of ["prefill", "denoise"]) {
      for (const name of ["flops", "bytes"]) expect(figure(station, name)).toBeGreaterThan(1e5);
      // A CPU is no card with a data sheet.
      expect(figure(station, "achieved")).toBeNull();
    }
    expect(figure("model", "allocations_per_chunk")).toBe(0);
  }
  // A CPU runs one observation at a time.
  expect(stateless[0]?.batches.map(({ asked, batch }) => [asked, batch])).toEqual([
    [1, 1],
    [2, 1],
  ]);
  expect(stateful[0]?.sessions.counts.map(({ sessions }) => sessions)).toEqual([1, 4, 5]);
}, 120_000);

test("chunk: the page has a waterfall of the median and of the slowest request", async () => {
  const { html } = chunkReport(from, measured(await runChunkSuite({ ...echo, chunks: 5 })));
  for (const part of ["Median request: ", "Slowest request: ", ">decode<", ">rest<"]) expect(html).toContain(part);
  expect(html).not.toMatch(/<script|https?:|NaN/);
}, 60_000);
