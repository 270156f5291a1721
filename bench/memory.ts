/**
 * Does the service's memory grow, and does a chunk allocate?
 *
 * Growth: the service runs in a child process (server-child.ts), because resident memory after a full collection can only be
 * read there. Robots send over HTTP from this process. Readings: five per tenth of the
 * requests; the median of the third tenth is compared with that of the last, so warm-up is left out and one odd reading does no harm.
 *
 * Allocations: counted by the native library itself, and for ONNX Runtime by a library that is loaded before it
 * (native/malloc-count); in a process of their own (allocation-child.ts), chunk by chunk, without HTTP.
 */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Problem } from "../src/error/problem.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median } from "../src/measure/stats.ts";
import { reportOf } from "./child.ts";
import { type MeasuredServer, startServer } from "./measured-server.ts";
import { type Figure, judged, type Proof, type Size } from "./proof.ts";

const MIB = 2 ** 20;
/** Asked for: growth of the median from the third tenth to the last. */
const GROWTH_MIB_MAX = 8;
const TENTHS = 10;
const READINGS = 5;
const ROBOTS = 4;
const MALLOC_COUNT = join(import.meta.dir, "../native/target/release/libtendon_malloc_count.so");

const DEVICES = ["echo", "cpu"] as const;
type Device = (typeof DEVICES)[number];
const REQUESTS = { small: { echo: 500, cpu: 50 }, full: { echo: 100_000, cpu: 10_000 } } as const;
const COUNTED_CHUNKS = { small: 10, full: 1000 } as const;

/** What allocation-child.ts prints: one number per chunk after warm-up. */
const Counts = Type.Object({ library: Type.Array(Type.Integer()), runtime: Type.Array(Type.Integer()) });

export const memory: Proof = {
  name: "memory",
  question: "Does the memory of the service grow with requests, and what does a chunk allocate?",
  async run(size: Size) {
    const rows: Figure[] = [];
    for (const device of DEVICES) {
      const counted = await allocations(device, COUNTED_CHUNKS[size]);
      if (counted instanceof Problem) return counted;
      const grown = await growth(device, REQUESTS[size][device]);
      if (grown instanceof Problem) return grown;
      rows.push(...counted, ...grown);
    }
    return judged(rows);
  },
};

async function allocations(device: Device, chunks: number): Promise<Figure[] | Problem> {
  if (!(await Bun.file(MALLOC_COUNT).exists())) return new Problem(`${MALLOC_COUNT} is missing; run: npm run setup`);
  const preload = { LD_PRELOAD: MALLOC_COUNT };
  const counts = await reportOf("allocation-child.ts", [device, String(chunks)], Counts, preload);
  if (counts instanceof Problem) return counts;
  const rows: Figure[] = [
    {
      measure: `${device}: allocations of our library in ${chunks} chunks`,
      value: sum(counts.library),
      unit: "1",
      limit: 0,
    },
  ];
  if (device === "echo") return rows;
  if (counts.runtime.some((count) => count < 0)) return new Problem("nothing counted ONNX Runtime's allocations");
  const half = Math.floor(counts.runtime.length / 2);
  const growth = median(counts.runtime.slice(half)) - median(counts.runtime.slice(0, half));
  const measure = `${device}: allocations of ONNX Runtime in a chunk`;
  rows.push({ measure: `${measure}, median`, value: median(counts.runtime), unit: "1" });
  // Least and most are told, not judged: a stray one or two are the runtime's own matter, growth is not.
  rows.push({ measure: `${measure}, least`, value: Math.min(...counts.runtime), unit: "1" });
  rows.push({ measure: `${measure}, most`, value: Math.max(...counts.runtime), unit: "1" });
  rows.push({ measure: `${measure}, median of the second half - of the first`, value: growth, unit: "1", limit: 0 });
  return rows;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function growth(device: Device, requests: number): Promise<Figure[] | Problem> {
  const frames = await sampleFrames(0);
  if (frames instanceof Problem) return frames;
  const server = await startServer(device);
  if (server instanceof Problem) return server;
  const { child } = server;
  try {
    const tenths: number[] = [];
    for (let tenth = 0; tenth < TENTHS; tenth++) {
      const rss = await tenthOf(server, frames, Math.round(requests / TENTHS), tenth);
      if (rss instanceof Problem) return await child.explain(rss);
      tenths.push(rss / MIB);
    }
    return figures(tenths, device, requests);
  } finally {
    await child.stop();
  }
}

/** Sends a tenth of the requests; the median resident memory, bytes, of the readings in between. */
async function tenthOf(
  server: MeasuredServer,
  frames: readonly Uint8Array[],
  requests: number,
  tenth: number,
): Promise<number | Problem> {
  const readings: number[] = [];
  for (let reading = 0; reading < READINGS; reading++) {
    const done = await driveChunks({
      service: server.child.service,
      robots: ROBOTS,
      chunks: Math.max(1, Math.round(requests / READINGS)),
      warmup: 0,
      scenes: [frames],
      sessionPrefix: `memory-${tenth}-${reading}`,
    });
    if (done instanceof Problem) return done;
    const rss = await server.residentBytes();
    if (rss instanceof Problem) return rss;
    readings.push(rss);
  }
  return median(readings);
}

function figures(tenths: readonly number[], device: Device, requests: number): Figure[] {
  const [third = Number.NaN, last = Number.NaN] = [tenths[2], tenths.at(-1)];
  return [
    ...tenths.map((value, index) => ({
      measure: `${device}: RSS after collection, tenth ${index + 1} of ${requests} requests`,
      value,
      unit: "MiB",
    })),
    { measure: `${device}: RSS growth, third tenth to last`, value: last - third, unit: "MiB", limit: GROWTH_MIB_MAX },
  ];
}
