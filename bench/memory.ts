/**
 * Does the service's memory grow, what does an idle session keep, and does a chunk allocate?
 *
 * The service runs in a child process (server-child.ts), because resident memory after a full collection can only be read there. Robots
 * send from this process, over HTTP and on sockets that stay open. Readings: resident.ts.
 *
 * Allocations are counted by the native library itself, and for ONNX Runtime by a library that is loaded before it
 * (native/malloc-count). They are counted in a separate process (allocation-child.ts), chunk by chunk, without HTTP.
 */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { withRobots } from "../src/measure/episode/robot-sockets.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { median } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { atOnce } from "./at-once.ts";
import { reportOf } from "./child.ts";
import { type MeasuredServer, onServer } from "./measured-server.ts";
import { type Figure, judged, type Proof, type Size } from "./proof.ts";
import { growth, idleHttp, idleSockets } from "./resident.ts";

const ROBOTS = 4;
const SOCKETS = {
  small: { open: 4, chunks: 100, idle: 50 },
  full: { open: 64, chunks: 50_000, idle: 500 },
} as const;
const MALLOC_COUNT = join(import.meta.dir, "../native/target/release/libtendon_malloc_count.so");

const DEVICES = ["echo", "cpu"] as const;
type Device = (typeof DEVICES)[number];
const REQUESTS = { small: { echo: 500, cpu: 50 }, full: { echo: 100_000, cpu: 10_000 } } as const;
const COUNTED_CHUNKS = { small: 10, full: 1000 } as const;

/** What allocation-child.ts prints: one number per chunk after warm-up. */
const Counts = Type.Object({ library: Type.Array(Type.Integer()), runtime: Type.Array(Type.Integer()) });

export const memory: Proof = {
  name: "memory",
  question:
    "Does the memory of the service grow with requests, what does an idle session keep, and what does a chunk allocate?",
  async run(size: Size) {
    const rows: Figure[] = [];
    for (const device of DEVICES) {
      const counted = await allocations(device, COUNTED_CHUNKS[size]);
      if (counted instanceof Problem) return counted;
      const growing = await grown(device, REQUESTS[size][device]);
      if (growing instanceof Problem) return growing;
      rows.push(...counted, ...growing);
    }
    const scenes = await drawnScenes(1);
    if (scenes instanceof Problem) return scenes;
    const { open, chunks, idle } = SOCKETS[size];
    for (const part of [
      (server: MeasuredServer) => openSockets(server, open, chunks, scenes),
      (server: MeasuredServer) => idleSockets(server, idle),
      (server: MeasuredServer) => idleHttp(server, idle, scenes),
    ]) {
      const figures = await onServer("echo", part);
      if (figures instanceof Problem) return figures;
      rows.push(...figures);
    }
    return judged(rows);
  },
};

async function allocations(device: Device, chunks: number): Promise<Figure[] | Problem> {
  if (!(await Bun.file(MALLOC_COUNT).exists())) return new Problem(`${MALLOC_COUNT} is missing; run: npm run setup`);
  const preload = { LD_PRELOAD: MALLOC_COUNT };
  const counts = await reportOf("allocation-child.ts", [device, String(chunks)], Counts, preload);
  if (counts instanceof Problem) return counts;
  const own = `${device}: allocations of our library in ${chunks} chunks`;
  const rows: Figure[] = [{ measure: own, value: sum(counts.library), unit: "1", limit: 0 }];
  if (device === "echo") return rows;
  if (counts.runtime.some((count) => count < 0)) return new Problem("nothing counted ONNX Runtime's allocations");
  const half = Math.floor(counts.runtime.length / 2);
  const growth = median(counts.runtime.slice(half)) - median(counts.runtime.slice(0, half));
  const measure = `${device}: allocations of ONNX Runtime in a chunk`;
  rows.push({ measure: `${measure}, median`, value: median(counts.runtime), unit: "1" });
  // Least and most are reported only: the runtime may allocate once in a while, but the median must not grow.
  rows.push({ measure: `${measure}, least`, value: Math.min(...counts.runtime), unit: "1" });
  rows.push({ measure: `${measure}, most`, value: Math.max(...counts.runtime), unit: "1" });
  rows.push({ measure: `${measure}, median of the second half - of the first`, value: growth, unit: "1", limit: 0 });
  return rows;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function grown(device: Device, requests: number): Promise<Figure[] | Problem> {
  const scenes = await drawnScenes(1);
  if (scenes instanceof Problem) return scenes;
  return await onServer(device, (server) =>
    growth({
      ...{ server, count: requests, name: `${device}, HTTP` },
      drive: async (chunks, part) => {
        const load = { service: server.child.service, robots: ROBOTS, chunks, warmup: 0, scenes };
        const done = await driveChunks({ ...load, sessionPrefix: `memory-${part}` });
        return done instanceof Problem ? done : undefined;
      },
    }),
  );
}

/** Robots whose sockets stay open send one observation after the other, without a clock. */
async function openSockets(server: MeasuredServer, robots: number, chunks: number, scenes: Scenes) {
  return await withRobots(server.child.service, robots, scenes, (connections) =>
    growth({
      ...{ server, count: chunks, name: `${robots} open sockets` },
      drive: (count) =>
        atOnce(robots, count, async (_, robot) => {
          const connection = present(connections[robot], "a robot's connection");
          connection.capture();
          const answer = await connection.observe();
          return answer instanceof Problem ? answer : undefined;
        }),
    }),
  );
}
