/** The figures of a measurement of `tendon bench gpu`: one list for programs, and a table for each part of it for people. */
import { median, percentile } from "../stats.ts";
import type { Round } from "./rounds.ts";
import type { Batch, GpuMeasurement } from "./suite.ts";

/** A table. The first row is its head. */
type Rows = readonly (readonly string[])[];

/** Copies to the device and back are part of prefill and denoise. */
const STATIONS = ["decode", "prefill", "denoise", "encode", "model"] as const satisfies readonly (keyof Round)[];
type Station = (typeof STATIONS)[number];

/** Times by events of the device. `host` is the rest of `model`. */
const BY_EVENTS = { prefill: "device prefill", denoise: "device denoise", host: "host" } as const;
type ByEvents = keyof typeof BY_EVENTS;
const EVENT_NAMES = Object.keys(BY_EVENTS) as ByEvents[];

/** One figure, for JSON. */
interface Figure {
  readonly part: string;
  readonly batch: number;
  readonly figure: string;
  /** NaN for what was not measured. */
  readonly value: number;
}

function timesOf({ rounds }: Batch, station: Station): number[] {
  return rounds.map((round) => round[station]).sort((one, other) => one - other);
}

/** Empty where the device timed no round. */
function eventTimesOf({ rounds }: Batch, name: ByEvents): number[] {
  return rounds.flatMap(({ onDevice }) => onDevice?.[name] ?? []).sort((one, other) => one - other);
}

/** Rows per second of model time: what the device computes when it never waits. */
function perSecond(batch: Batch): number {
  return (1000 * batch.asked) / median(timesOf(batch, "model"));
}

/** Sizes of a batch that the device ran together. */
function formed({ batches }: GpuMeasurement): Batch[] {
  return batches.filter(({ rounds }) => rounds.length > 0);
}

export function figuresOf(one: GpuMeasurement): Figure[] {
  const figures: Figure[] = [];
  const add = (part: string, batch: number, values: Readonly<Record<string, number>>) => {
    for (const [figure, value] of Object.entries(values)) figures.push({ part, batch, figure, value });
  };
  const { deviceWeights, copies, parity, socket } = one;
  const weights = { weights_shared_bytes: deviceWeights.sharedBytes, weights_own_bytes: deviceWeights.ownBytes };
  add("load", 1, { load_ms: one.loadMs, device_bytes: one.deviceBytes, ...weights });
  add("copy", 1, { to_device_bytes: copies.toDevice, from_device_bytes: copies.fromDevice });
  if (parity !== undefined) {
    const { differences, bound, tolerance } = parity;
    add("parity", 1, { difference_max: Math.max(...differences), bound, tolerance });
  }
  for (const batch of formed(one)) {
    const quantiles = (part: string, times: readonly number[]) =>
      add(part, batch.asked, { p50_ms: percentile(times, 50), p99_ms: percentile(times, 99) });
    for (const station of STATIONS) quantiles(station, timesOf(batch, station));
    for (const name of EVENT_NAMES) {
      const times = eventTimesOf(batch, name);
      if (times.length > 0) quantiles(BY_EVENTS[name], times);
    }
    const { allocationsPerChunk } = batch;
    add("model", batch.asked, {
      chunks_per_second: perSecond(batch),
      allocations_per_chunk: allocationsPerChunk,
    });
  }
  if (typeof socket !== "string") {
    for (const [when, { p50, p99 }] of Object.entries(socket)) {
      add(`socket ${FRAMES[when as keyof typeof FRAMES]}`, 1, { p50_ms: p50, p99_ms: p99 });
    }
  }
  return figures;
}

const FRAMES = { together: "frames with it", framesBefore: "frames before" } as const;

const ms = (value: number) => (Number.isFinite(value) ? value.toFixed(value < 10 ? 3 : 2) : "-");
const count = (value: number) => (Number.isFinite(value) ? value.toFixed(value < 10 ? 2 : 0) : "-");

/** Stations against sizes of a batch, the median and the 99th percentile of each. */
export function stationRows(one: GpuMeasurement): Rows {
  const batches = formed(one);
  const head = ["ms", ...batches.flatMap(({ asked }) => [`batch ${asked} p50`, "p99"])];
  const row = (name: string, times: (batch: Batch) => number[]) => [
    name,
    ...batches.flatMap((batch) => [50, 99].map((rank) => ms(percentile(times(batch), rank)))),
  ];
  const events = EVENT_NAMES.filter((name) => batches.some((batch) => eventTimesOf(batch, name).length > 0));
  return [
    head,
    ...STATIONS.map((station) => row(station, (batch) => timesOf(batch, station))),
    ...events.map((name) => row(BY_EVENTS[name], (batch) => eventTimesOf(batch, name))),
  ];
}

export function throughputRows(one: GpuMeasurement): Rows {
  const rows = formed(one).map((batch) => {
    const rate = perSecond(batch);
    const fed = (rate * one.chunkPlaysMs) / 1000;
    return [String(batch.asked), count(rate), count(fed), batch.allocationsPerChunk.toFixed(2)];
  });
  return [["batch", "chunks/s", "robots fed", "allocations"], ...rows];
}

export function socketRows({ socket }: GpuMeasurement): Rows {
  if (typeof socket === "string") return [];
  const rows = Object.entries(socket).map(([when, one]) => [
    FRAMES[when as keyof typeof FRAMES],
    ...[one.p50, one.p99, one.max].map(ms),
  ]);
  return [["ms", "p50", "p99", "max"], ...rows];
}
