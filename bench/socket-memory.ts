/**
 * The memory of a service with open sockets, read after a full collection.
 *
 * In use: robots whose sockets stay open the whole time send one observation after the other, without a clock. Readings: five per
 * tenth of the chunks, between two observations; the median of the third tenth is compared with that of the last.
 *
 * Idle: a socket has an open session and waits for its first frame. Its cost is what resident memory has more with all of a batch
 * than before it. A second batch opens beside the first: room that the start of the process left in the heap is used up by then.
 */
import { Problem } from "../src/error/problem.ts";
import { openSessions, withRobots } from "../src/measure/episode/robot-sockets.ts";
import { median } from "../src/measure/stats.ts";
import type { MeasuredServer } from "./measured-server.ts";
import type { Figure } from "./proof.ts";

const MIB = 2 ** 20;
const TENTHS = 10;
const READINGS = 5;
/** Between two readings that nothing happens between. */
const READING_MS = 200;
/** "Flat": what the memory proof grants. */
const GROWTH_MIB_MAX = 8;
/** Asked for. */
const SOCKET_KB_MAX = 50;
/** Opened and closed before the first reading, so that what the first sockets bring into memory is no cost of the others. */
const SOCKETS_BEFORE = 20;
const BATCHES = ["first", "second"];

type Connections = Parameters<Parameters<typeof withRobots>[3]>[0];

export async function memoryInUse(
  server: MeasuredServer,
  robots: number,
  chunks: number,
  scenes: readonly (readonly Uint8Array[])[],
): Promise<Figure[] | Problem> {
  return await withRobots(server.child.service, robots, scenes, async (connections) => {
    const tenths: number[] = [];
    for (let tenth = 0; tenth < TENTHS; tenth += 1) {
      const readings: number[] = [];
      for (let reading = 0; reading < READINGS; reading += 1) {
        const lost = await drive(connections, Math.max(1, Math.round(chunks / TENTHS / READINGS)));
        if (lost !== undefined) return lost;
        const bytes = await server.residentBytes();
        if (bytes instanceof Problem) return bytes;
        readings.push(bytes);
      }
      tenths.push(median(readings) / MIB);
    }
    const [third = Number.NaN, last = Number.NaN] = [tenths[2], tenths.at(-1)];
    const name = `${robots} open sockets, ${chunks} chunks`;
    return [
      ...tenths.map((value, index) => ({ measure: `${name}: RSS, tenth ${index + 1}`, value, unit: "MiB" })),
      { measure: `${name}: RSS growth, third tenth to last`, value: last - third, unit: "MiB", limit: GROWTH_MIB_MAX },
    ];
  });
}

/** So many observations over all robots: each takes the next one as soon as it has its chunk. */
async function drive(connections: Connections, chunks: number): Promise<Problem | undefined> {
  let left = chunks;
  let problem: Problem | undefined;
  const work = async (connection: Connections[number]): Promise<void> => {
    while (left > 0 && problem === undefined) {
      left -= 1;
      connection.capture();
      const answer = await connection.observe();
      if (answer instanceof Problem) problem = answer;
    }
  };
  await Promise.all(connections.map(work));
  return problem;
}

export async function memoryIdle(server: MeasuredServer, sockets: number): Promise<Figure[] | Problem> {
  const { service } = server.child;
  const warm = await openSessions(service, SOCKETS_BEFORE);
  if (warm instanceof Problem) return warm;
  await Promise.all(warm.map(({ socket }) => socket.close()));
  const first = await settledBytes(server);
  if (first instanceof Problem) return first;
  const figures: Figure[] = [{ measure: "idle sockets: RSS before", value: first / MIB, unit: "MiB" }];
  const open: Exclude<typeof warm, Problem> = [];
  let before = first;
  for (const batch of BATCHES) {
    const more = await openSessions(service, sockets);
    if (more instanceof Problem) return more;
    open.push(...more);
    const after = await settledBytes(server);
    if (after instanceof Problem) return after;
    const eachKb = (after - before) / sockets / 1000;
    before = after;
    const name = `${batch} ${sockets} idle sockets`;
    figures.push(
      { measure: `${name}: RSS with them`, value: after / MIB, unit: "MiB" },
      { measure: `${name}: each`, value: eachKb, unit: "kB", limit: SOCKET_KB_MAX, least: 0 },
    );
  }
  // One that was lost meanwhile would have cost nothing.
  const ends = await Promise.all(open.map(({ socket }) => socket.close()));
  return ends.find((end) => end !== undefined) ?? figures;
}

/** Resident memory, the median of some readings. */
async function settledBytes(server: MeasuredServer): Promise<number | Problem> {
  const readings: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    await Bun.sleep(READING_MS);
    const bytes = await server.residentBytes();
    if (bytes instanceof Problem) return bytes;
    readings.push(bytes);
  }
  return median(readings);
}
