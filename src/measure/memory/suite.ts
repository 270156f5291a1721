/**
 * `tendon bench memory`: how much memory does an idle session keep, on a socket and over HTTP?
 *
 * Resident memory of the service's process as Linux counts it, before and after a batch of sessions. A second batch is opened beside the
 * first: free memory that the start of the process left is used up by then. Garbage is not collected for the reading, so a figure is
 * what a session costs at most; requests of one session alone stand beside it as a control, since they leave garbage too.
 */
import { descriptionOf } from "../../client/description.ts";
import type { Service } from "../../client/http.ts";
import { sleep, systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { openSessions } from "../episode/robot-sockets.ts";
import { Robots } from "../load/robots.ts";
import { residentBytes } from "../process.ts";
import { SAMPLE_MODEL } from "../sample/observation.ts";
import type { Scenes } from "../sample/scenes.ts";
import { median } from "../stats.ts";
import { type BenchTarget, type Measurement, measureCases, scenesFor, type Unnamed } from "../target.ts";

/** Opened and closed, or sent, before the first reading, so that one-time costs are not counted. */
const BEFORE = { sockets: 20, requests: 200 };
const CONTROL = "control: one session";
const READINGS = 5;
/** Before each reading. */
const READING_MS = 200;

interface Batch {
  readonly batch: string;
  readonly beforeBytes: number;
  readonly afterBytes: number;
}

export interface MemoryMeasurement extends Measurement, Batch {
  readonly kind: "socket" | "http";
}

interface Growth extends Unnamed<Measurement> {
  readonly kind: MemoryMeasurement["kind"];
  readonly batches: readonly Batch[];
}

export async function runMemorySuite(
  plan: BenchTarget & { readonly sessions: number; readonly requestsBefore?: number; readonly readingMs?: number },
): Promise<MemoryMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const { sessions, requestsBefore = BEFORE.requests, readingMs = READING_MS } = plan;
  const cases = (["socket", "http"] as const).map((kind) => ({ kind, told: `${sessions} idle sessions, ${kind}` }));
  const measured = await measureCases(plan, cases, async ({ service, pid }, { kind }) => {
    if (pid === undefined) return new Problem("the memory of a service that was already running cannot be read");
    const description = await descriptionOf(service, SAMPLE_MODEL);
    if (description instanceof Problem) return description;
    const load = { service, sessions, requestsBefore, scenes, reading: () => settledBytes(pid, readingMs) };
    const batches = await (kind === "socket" ? socketBatches(load) : httpBatches(load));
    if (batches instanceof Problem) return batches;
    const growth: Growth = { kind, robots: sessions, batches, reference: description.warning !== undefined };
    return growth;
  });
  if (measured instanceof Problem) return measured;
  return measured.flatMap(({ batches, ...one }) => batches.map((batch) => ({ ...one, ...batch })));
}

interface Load {
  readonly service: Service;
  readonly sessions: number;
  readonly requestsBefore: number;
  readonly scenes: Scenes;
  /** Resident bytes now. */
  readonly reading: () => Promise<number>;
}

/** Sockets with an open session that wait for their first frame. */
async function socketBatches({ service, sessions, reading }: Load): Promise<Batch[] | Problem> {
  const warm = await openSessions(service, BEFORE.sockets);
  if (warm instanceof Problem) return warm;
  await Promise.all(warm.map(({ socket }) => socket.close()));
  const open: Exclude<typeof warm, Problem> = [];
  const batches = await readBatches(["first", "second"], reading, async () => {
    const more = await openSessions(service, sessions);
    if (more instanceof Problem) return more;
    open.push(...more);
    return undefined;
  });
  // A socket that broke meanwhile would make the average too low.
  const ends = await Promise.all(open.map(({ socket }) => socket.close()));
  return ends.find((end) => end !== undefined) ?? batches;
}

/** Sessions that have had one chunk each. One request at a time, so that the bodies under way are not counted. */
async function httpBatches({ service, sessions, requestsBefore, scenes, reading }: Load): Promise<Batch[] | Problem> {
  const sender = new Robots(service, scenes, `bench-${systemClock.unixMs()}`);
  const cold = await sender.warmUp(1, requestsBefore);
  if (cold !== undefined) return cold;
  let robot = 0;
  return await readBatches([CONTROL, "first", "second"], reading, async (batch) => {
    for (let sent = 0; sent < sessions; sent += 1) {
      if (batch !== CONTROL) robot += 1;
      const refusal = await sender.send(robot);
      if (refusal !== undefined) return refusal.problem;
    }
    return undefined;
  });
}

/** Memory before and after each batch; the reading after one is that before the next. */
async function readBatches(
  names: readonly string[],
  reading: () => Promise<number>,
  open: (batch: string) => Promise<Problem | undefined>,
): Promise<Batch[] | Problem> {
  const batches: Batch[] = [];
  let beforeBytes = await reading();
  for (const batch of names) {
    const lost = await open(batch);
    if (lost !== undefined) return lost;
    const afterBytes = await reading();
    batches.push({ batch, beforeBytes, afterBytes });
    beforeBytes = afterBytes;
  }
  return batches;
}

/** The median of some readings. */
async function settledBytes(pid: number, readingMs: number): Promise<number> {
  const readings: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    await sleep(systemClock, readingMs);
    readings.push(await residentBytes(pid));
  }
  return median(readings);
}
