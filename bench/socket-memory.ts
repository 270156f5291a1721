/**
 * The memory of a service with open sockets, read after a full collection.
 *
 * In use: robots whose sockets stay open the whole time send one observation after the other, without a clock. Readings:
 * growth.ts, between two observations.
 *
 * Idle: a socket has an open session and waits for its first frame. Its cost is the growth of resident memory by a batch of
 * sockets. A second batch opens beside the first: free heap that the start of the process left is used up by then.
 */

import type { Connection } from "../src/measure/episode/loop-robot.ts";
import { openSessions, withRobots } from "../src/measure/episode/robot-sockets.ts";
import type { Scenes } from "../src/measure/sample/scenes.ts";
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { growth, MIB } from "./growth.ts";
import type { MeasuredServer } from "./measured-server.ts";
import type { Figure } from "./proof.ts";

const READINGS = 5;
/** Pause before each reading of idle sockets. */
const READING_MS = 200;
/** Asked for. */
const SOCKET_KB_MAX = 50;
/** Opened and closed before the first reading, so that one-time costs of the first sockets are not counted. */
const SOCKETS_BEFORE = 20;
const BATCHES = ["first", "second"];

export async function memoryInUse(
  server: MeasuredServer,
  robots: number,
  chunks: number,
  scenes: Scenes,
): Promise<Figure[] | Problem> {
  return await withRobots(server.child.service, robots, scenes, (connections) =>
    growth({
      server,
      count: chunks,
      name: `${robots} open sockets, ${chunks} chunks`,
      tenth: (number) => `RSS, tenth ${number}`,
      drive: (count) => drive(connections, count),
    }),
  );
}

/** `chunks` observations over all robots; each sends the next one as soon as it has its chunk. */
async function drive(connections: readonly Connection[], chunks: number): Promise<Problem | undefined> {
  let left = chunks;
  let problem: Problem | undefined;
  const work = async (connection: Connection): Promise<void> => {
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
  // A socket that broke meanwhile would make the average too low.
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
