/**
 * The resident memory of a service, read after a full collection: its growth under load, and what an idle session keeps.
 *
 * Growth: five readings for each tenth of the load. The median of the third tenth is compared with that of the last, so that warm-up is
 * left out and one odd reading does not count. Idle sessions: a second batch opens beside the first, when the free heap that the start
 * of the process left is used up.
 */
import { openSessions } from "../src/measure/episode/robot-sockets.ts";
import { Robots } from "../src/measure/load/robots.ts";
import type { Scenes } from "../src/measure/sample/scenes.ts";
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import type { MeasuredServer } from "./measured-server.ts";
import { type Figure, MIB } from "./proof.ts";

const TENTHS = 10;
const READINGS = 5;
/** Pause before each reading of idle sessions. */
const READING_MS = 200;
/** Growth of the median from the third tenth to the last. */
const GROWTH_MIB_MAX = 8;
/** Limits for an idle session. */
const SOCKET_LIMITS = { limit: 50, least: 0 } as const;
const HTTP_LIMITS = { limit: 64 } as const;
/** Opened and closed before the first reading, or sent: one-time costs are not counted. */
const BEFORE = { sockets: 20, requests: 200 } as const;

interface Load {
  readonly server: MeasuredServer;
  readonly name: string;
  /** Over all readings. */
  readonly count: number;
  /** Drives its part of the load; `part` differs at each call. */
  readonly drive: (count: number, part: string) => Promise<Problem | undefined>;
}

export async function growth({ server, count, drive, name }: Load): Promise<Figure[] | Problem> {
  const tenths: number[] = [];
  for (let at = 0; at < TENTHS; at += 1) {
    const share = Math.max(1, Math.round(count / TENTHS / READINGS));
    const bytes = await medianBytes(server, (reading) => drive(share, `${at}-${reading}`));
    if (bytes instanceof Problem) return bytes;
    tenths.push(bytes / MIB);
  }
  const [third = Number.NaN, last = Number.NaN] = [tenths[2], tenths.at(-1)];
  return [
    ...tenths.map((value, at) => ({ measure: `${name}: RSS, tenth ${at + 1} of ${count}`, value, unit: "MiB" })),
    { measure: `${name}: RSS growth, third tenth to last`, value: last - third, unit: "MiB", limit: GROWTH_MIB_MAX },
  ];
}

/** `before`: what happens before each reading. */
async function medianBytes(
  server: MeasuredServer,
  before: (reading: number) => Promise<Problem | undefined>,
): Promise<number | Problem> {
  const readings: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    const lost = await before(reading);
    if (lost !== undefined) return lost;
    const bytes = await server.residentBytes();
    if (bytes instanceof Problem) return bytes;
    readings.push(bytes);
  }
  return median(readings);
}

/** Sockets with an open session that wait for their first frame. */
export async function idleSockets(server: MeasuredServer, count: number): Promise<Figure[] | Problem> {
  const { service } = server.child;
  const warm = await openSessions(service, BEFORE.sockets);
  if (warm instanceof Problem) return warm;
  await Promise.all(warm.map(({ socket }) => socket.close()));
  const open: Exclude<typeof warm, Problem> = [];
  const add = async () => {
    const more = await openSessions(service, count);
    if (more instanceof Problem) return more;
    open.push(...more);
    return undefined;
  };
  const batches = ["first", "second"].map((batch) => ({ batch, add, limits: SOCKET_LIMITS }));
  const figures = await growthByBatch(server, `${count} idle sockets`, count, batches);
  // A socket that broke meanwhile would make the average too low.
  const ends = await Promise.all(open.map(({ socket }) => socket.close()));
  return ends.find((end) => end !== undefined) ?? figures;
}

/** Sessions that have had one chunk over HTTP, beside as many requests of one session, which keep nothing. */
export async function idleHttp(server: MeasuredServer, count: number, scenes: Scenes): Promise<Figure[] | Problem> {
  const sender = new Robots(server.child.service, scenes, "idle");
  const cold = await sender.warmUp(1, Math.min(BEFORE.requests, count));
  if (cold !== undefined) return cold;
  let robot = 0;
  // One request at a time: bodies under way are not counted.
  const add = async (step: 0 | 1) => {
    for (let sent = 0; sent < count; sent += 1) {
      robot += step;
      const refusal = await sender.send(robot);
      if (refusal !== undefined) return refusal.problem;
    }
    return undefined;
  };
  return await growthByBatch(server, `${count} idle HTTP sessions`, count, [
    { batch: "control, one session", add: () => add(0), limits: {} },
    ...["first", "second"].map((batch) => ({ batch, add: () => add(1), limits: HTTP_LIMITS })),
  ]);
}

interface Batch {
  readonly batch: string;
  readonly limits: Partial<Figure>;
  add(): Promise<Problem | undefined>;
}

async function growthByBatch(
  server: MeasuredServer,
  name: string,
  count: number,
  batches: readonly Batch[],
): Promise<Figure[] | Problem> {
  const settled = () => medianBytes(server, () => Bun.sleep(READING_MS).then(() => undefined));
  let before = await settled();
  const figures: Figure[] = [];
  for (const { batch, add, limits } of batches) {
    const lost = await add();
    if (lost !== undefined) return lost;
    const after = await settled();
    if (before instanceof Problem) return before;
    if (after instanceof Problem) return after;
    const value = (after - before) / count / 1000;
    figures.push({ measure: `${name}, ${batch}: each`, value, unit: "kB", ...limits });
    before = after;
  }
  return figures;
}
