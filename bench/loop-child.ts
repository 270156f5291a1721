/** The measured process of bench/loop.ts: `bun bench/loop-child.ts DEVICE CHUNKS`, one JSON object to standard output. */
import { readFile } from "node:fs/promises";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { Problem } from "../src/std/problem.ts";
import { report } from "./child.ts";
import { type Timed, timeForeignCalls, timeOne } from "./timed-ffi.ts";

const WARMUP_CHUNKS = 20;
/** The timer alone, without any chunk: lateness that is not ours. */
const IDLE_MS_MAX = 2000;

const log = timeForeignCalls();
const { oneChunk, openModel } = await import("./engine.ts");

/** Lateness of each tick of a 1 ms timer, in milliseconds, until it is stopped. */
function startTimer(): () => number[] {
  const late: number[] = [];
  let expected = performance.now() + 1;
  const timer = setInterval(() => {
    const now = performance.now();
    late.push(Math.max(0, now - expected));
    // A tick that came late does not make the next one late.
    expected = now + 1;
  }, 1);
  return () => {
    clearInterval(timer);
    return late;
  };
}

/** Milliseconds that this thread has spent ready to run, waiting for a core that others used. */
async function waitedMs(): Promise<number> {
  const text = await readFile(`/proc/self/task/${process.pid}/schedstat`, "utf8");
  return Number(text.split(" ")[1]) / 1e6;
}

/** Calls and callbacks of one chunk of three frames, and about as long as its longest ones take. */
const CONTROL = { windows: 10, us: 20, pauseMs: 25 } as const;

/** The longest of ten windows of 20 µs that only read the clock, at the pace of chunks: interruptions by the machine alone. */
async function control(rounds: number): Promise<number[]> {
  const longest: number[] = [];
  const log: Timed[] = [];
  for (let round = 0; round < rounds; round++) {
    log.length = 0;
    for (let window = 0; window < CONTROL.windows; window++) {
      timeOne(log, "control", () => {
        const end = performance.now() + CONTROL.us / 1000;
        while (performance.now() < end);
      });
    }
    longest.push(Math.max(...log.map((one) => one.us)));
    await Bun.sleep(CONTROL.pauseMs);
  }
  return longest;
}

async function main(device: string, chunks: number): Promise<object | Problem> {
  const frames = await sampleFrames(0);
  if (frames instanceof Problem) return frames;
  const open = await openModel({ decodeThreads: 2, device });
  if (open instanceof Problem) return open;
  for (let step = 0; step < WARMUP_CHUNKS; step++) await oneChunk(open, frames, step);
  const stopIdle = startTimer();
  await Bun.sleep(Math.min(IDLE_MS_MAX, chunks * 20));
  const idle = stopIdle();
  const controlled = await control(chunks);
  const longest: number[] = [];
  const longestCpu: number[] = [];
  const calls: Timed[] = [];
  const waitedBefore = await waitedMs();
  const before = performance.now();
  const stopBusy = startTimer();
  for (let step = 0; step < chunks; step++) {
    log.length = 0;
    await oneChunk(open, frames, step);
    longest.push(Math.max(...log.map((call) => call.us)));
    longestCpu.push(Math.max(...log.map((call) => call.cpuUs)));
    calls.push(...log);
  }
  const busy = stopBusy();
  const waited = ((await waitedMs()) - waitedBefore) / (performance.now() - before);
  await open.close();
  const byName = Object.groupBy(calls, (call) => call.name);
  const names = Object.entries(byName).map(([name, list]) => [name, (list ?? []).map((call) => call.us)] as const);
  const calls_us = Object.fromEntries(names);
  return {
    longest_us: longest,
    longest_cpu_us: longestCpu,
    control_us: controlled,
    calls_us,
    idle_ms: idle,
    busy_ms: busy,
    waited,
  };
}

await report(() => main(process.argv[2] ?? "echo", Number(process.argv[3] ?? "100")));
