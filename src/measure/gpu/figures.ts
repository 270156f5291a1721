/** The figures of a measurement of `tendon bench gpu`: one list, as JSON for programs and as a table for people. */
import { type Align, table } from "../../std/text-table.ts";
import { median, percentile } from "../stats.ts";
import type { Round } from "./rounds.ts";
import type { Batch, GpuMeasurement } from "./suite.ts";

/** Copies to the device and back are part of prefill and denoise. */
const STATIONS = ["decode", "prefill", "denoise", "encode", "model"] as const satisfies readonly (keyof Round)[];
type Station = (typeof STATIONS)[number];

/** Times by events of the device. `host` is the rest of `model`. */
const BY_EVENTS = { prefill: "device prefill", denoise: "device denoise", host: "host" } as const;
type ByEvents = keyof typeof BY_EVENTS;
const EVENT_NAMES = Object.keys(BY_EVENTS) as ByEvents[];

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
  for (const batch of one.batches) {
    // Observations of this number did not run together.
    if (batch.rounds.length === 0) continue;
    const quantiles = (part: string, times: readonly number[]) =>
      add(part, batch.asked, { p50_ms: percentile(times, 50), p99_ms: percentile(times, 99) });
    for (const station of STATIONS) quantiles(station, timesOf(batch, station));
    for (const name of EVENT_NAMES) {
      const times = eventTimesOf(batch, name);
      if (times.length > 0) quantiles(BY_EVENTS[name], times);
    }
    // What the device computes when it never waits.
    const perSecond = (1000 * batch.asked) / median(timesOf(batch, "model"));
    add("model", batch.asked, {
      chunks_per_second: perSecond,
      robots_fed: (perSecond * one.chunkPlaysMs) / 1000,
      allocations_per_chunk: batch.allocationsPerChunk,
    });
  }
  if (typeof socket !== "string") {
    for (const [when, { p50, p99, max }] of Object.entries(socket)) {
      add(`socket ${FRAMES[when as keyof typeof FRAMES]}`, 1, { p50_ms: p50, p99_ms: p99, max_ms: max });
    }
  }
  return figures;
}

const FRAMES = { together: "frames with it", framesBefore: "frames before" } as const;

/** A row for each figure, a column for each size of a batch. */
export function tableOf(figures: readonly Figure[]): string {
  const batches = [...new Set(figures.map(({ batch }) => batch))];
  const rows = new Map<string, string[]>();
  for (const { part, figure, batch, value } of figures) {
    const name = `${part} ${figure}`;
    const cells = rows.get(name) ?? Array(batches.length).fill("");
    rows.set(name, cells.with(batches.indexOf(batch), shown(value)));
  }
  const head = ["", ...batches.map((batch) => `batch ${batch}`)];
  const align: Align[] = ["left", ...batches.map(() => "right" as const)];
  return table([head, ...[...rows].map(([name, cells]) => [name, ...cells])], align);
}

function shown(value: number): string {
  if (!Number.isFinite(value)) return "-";
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}
