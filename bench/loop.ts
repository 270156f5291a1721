/**
 * Does the native engine leave the event loop free?
 *
 * A separate process (loop-child.ts), without HTTP, times every call into the library and every callback out of it by wall clock
 * and by the thread's CPU time. A 1 ms timer ticks beside them. By wall clock a call that the kernel or the machine's host
 * interrupts counts with the interruption; a control that calls nothing shows how long those are. One robot, one chunk
 * after the other, two decode threads and one replica on this machine's cores.
 */
import { Type } from "@sinclair/typebox";
import { percentile } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { reportOf } from "./child.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const CHUNKS = { small: 10, full: 1000 } as const;
/** Asked for: the longest call or callback of a chunk at p99.9. */
const LONGEST_US_MAX = 500;

const Numbers = Type.Array(Type.Number());
const Report = Type.Object({
  /** The longest call or callback of each chunk. */
  longest_us: Numbers,
  /** The same by the thread's CPU time. */
  longest_cpu_us: Numbers,
  /** The longest of as many windows of 20 µs that only look at the clock, at the same pace. */
  control_us: Numbers,
  calls_us: Type.Record(Type.String(), Numbers),
  idle_ms: Numbers,
  busy_ms: Numbers,
  /** Part of the time in which the event loop's thread was ready to run and another thread had the core. */
  waited: Type.Number(),
});

export const loop: Proof = {
  name: "loop",
  question:
    "Does the native engine leave the event loop free: the longest call or callback, and a 1 ms timer beside the chunks?",
  async run(size) {
    const rows: Figure[] = [];
    for (const device of ["echo", "cpu"]) {
      const figures = await onDevice(device, CHUNKS[size]);
      if (figures instanceof Problem) return figures;
      rows.push(...figures);
    }
    return judged(rows);
  },
};

async function onDevice(device: string, chunks: number): Promise<Figure[] | Problem> {
  const report = await reportOf("loop-child.ts", [device, String(chunks)], Report);
  if (report instanceof Problem) return report;
  const all = Object.values(report.calls_us).flat();
  const limit = { limit: LONGEST_US_MAX };
  const us = (measure: string, values: readonly number[], percent: number, limits: Partial<Figure> = {}): Figure => {
    return { measure: `${device}: ${measure}`, value: at(values, percent), unit: "us", ...limits };
  };
  const timers = { "1 ms timer alone": report.idle_ms, "1 ms timer beside the chunks": report.busy_ms };
  return [
    us(`longest call or callback of a chunk, p99.9 of ${chunks}`, report.longest_us, 99.9, limit),
    us(`the same of all ${all.length} calls and callbacks, p99.9`, all, 99.9, limit),
    us("longest of a chunk by the thread's CPU time, p99.9", report.longest_cpu_us, 99.9, limit),
    us("control without the engine, longest of ten 20 us windows, p99.9", report.control_us, 99.9),
    us("longest call or callback of all", report.longest_us, 100),
    ...Object.entries(report.calls_us).flatMap(([name, times]) => [
      us(`${name}, p50 of ${times.length}`, times, 50),
      us(`${name}, max`, times, 100),
    ]),
    ...Object.entries(timers).flatMap(([name, times]) =>
      [50, 99, 100].map((percent) => {
        const measure = `${device}: ${name}, lateness ${percent === 100 ? "max" : `p${percent}`}`;
        return { measure, value: at(times, percent), unit: "ms" };
      }),
    ),
    { measure: `${device}: event loop waiting for a core, part of the time`, value: report.waited, unit: "1" },
  ];
}

function at(values: readonly number[], percent: number): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    percent,
  );
}
