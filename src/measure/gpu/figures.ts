/** The figures of `tendon bench gpu` as rows of text, each part of a measurement a table of its own. */
import { median, percentile } from "../stats.ts";
import type { Round } from "./rounds.ts";
import type { Batch, GpuMeasurement } from "./suite.ts";

/** A table: its first row is its head. */
export type Rows = readonly (readonly string[])[];

/** Where the time is; what is copied to the device and back is part of prefill and denoise. */
const STATION_NAMES = ["decode", "prefill", "denoise", "encode", "model"] as const satisfies readonly (keyof Round)[];

type Station = (typeof STATION_NAMES)[number];
type Timed = keyof NonNullable<Round["onDevice"]>;

/** What events tell: the device's part of two stations, and the host's part of a chunk. */
const TIMED_NAMES = {
  prefill: "device prefill",
  denoise: "device denoise",
  host: "host",
} as const satisfies Record<Timed, string>;
const TIMED = Object.keys(TIMED_NAMES) as Timed[];

/** One figure of a measurement: for CSV and JSON. */
export interface Figure {
  readonly part: string;
  readonly batch: number;
  readonly figure: string;
  /** NaN is not there. */
  readonly value: number;
}

export function timesOf({ rounds }: Batch, station: Station): number[] {
  return rounds.map((round) => round[station]).sort((one, other) => one - other);
}

/** By the device's events; none where it timed no round. */
function timedOf({ rounds }: Batch, what: Timed): number[] {
  return rounds.flatMap(({ onDevice }) => onDevice?.[what] ?? []).sort((one, other) => one - other);
}

/** The median of what the device was at, or by the clock of the host where it does not tell. */
function workMs(batch: Batch, station: "prefill" | "denoise"): number {
  const timed = timedOf(batch, station);
  return median(timed.length > 0 ? timed : timesOf(batch, station));
}

/** Rows per second of model time: what the device does when it never waits. */
function perSecond(batch: Batch): number {
  return (1000 * batch.asked) / median(timesOf(batch, "model"));
}

/** The part of the least time that is not lost; NaN without a roofline. */
function achieved(batch: Batch, station: "prefill" | "denoise"): number {
  const least = batch.roof[station].leastMs;
  return least === undefined ? Number.NaN : least / workMs(batch, station);
}

function jouleOf(batch: Batch): number {
  return (batch.drawn?.watts ?? Number.NaN) / perSecond(batch);
}

export function figuresOf(one: GpuMeasurement): Figure[] {
  const { batches, parity, sessions, socket, torch } = one;
  const all: Figure[] = [
    { part: "load", batch: 1, figure: "load_ms", value: one.loadMs },
    { part: "load", batch: 1, figure: "device_bytes", value: one.deviceBytes },
    { part: "load", batch: 1, figure: "weights_shared_bytes", value: one.deviceWeights.sharedBytes },
    { part: "load", batch: 1, figure: "weights_own_bytes", value: one.deviceWeights.ownBytes },
    { part: "copy", batch: 1, figure: "to_device_bytes", value: one.copies.toDevice },
    { part: "copy", batch: 1, figure: "from_device_bytes", value: one.copies.fromDevice },
  ];
  if (parity !== undefined) {
    const { differences, bound, tolerance } = parity;
    const held = { difference_max: Math.max(...differences), bound, tolerance };
    for (const [figure, value] of Object.entries(held)) all.push({ part: "parity", batch: 1, figure, value });
  }
  for (const batch of batches.filter(({ rounds }) => rounds.length > 0)) {
    const add = (part: string, figure: string, value: number) => all.push({ part, batch: batch.asked, figure, value });
    for (const station of STATION_NAMES) {
      const times = timesOf(batch, station);
      for (const percent of [50, 99]) add(station, `p${percent}_ms`, percentile(times, percent));
    }
    for (const what of TIMED) {
      const times = timedOf(batch, what);
      if (times.length === 0) continue;
      for (const percent of [50, 99]) add(TIMED_NAMES[what], `p${percent}_ms`, percentile(times, percent));
    }
    for (const station of ["prefill", "denoise"] as const) {
      const { flops, bytes, leastMs } = batch.roof[station];
      add(station, "flops", flops);
      add(station, "bytes", bytes);
      add(station, "least_ms", leastMs ?? Number.NaN);
      add(station, "achieved", achieved(batch, station));
    }
    add("model", "chunks_per_second", perSecond(batch));
    add("model", "allocations_per_chunk", batch.allocationsPerChunk);
    add("power", "watts", batch.drawn?.watts ?? Number.NaN);
    add("power", "joules_per_chunk", jouleOf(batch));
  }
  for (const { sessions: count, memoryBytes, chunkMs } of sessions.counts) {
    all.push({ part: `${count} sessions`, batch: 1, figure: "memory_bytes", value: memoryBytes });
    all.push({ part: `${count} sessions`, batch: 1, figure: "chunk_p50_ms", value: chunkMs });
  }
  const limit = { fit: sessions.counts.at(-1)?.sessions, refused: sessions.refused };
  for (const [figure, value] of Object.entries(limit)) {
    if (value !== undefined) all.push({ part: "sessions", batch: 1, figure, value });
  }
  if (typeof socket !== "string") {
    for (const [part, summary] of Object.entries(socket)) {
      for (const name of ["p50", "p99"] as const)
        all.push({ part: `socket ${wordsOf(part)}`, batch: 1, figure: `${name}_ms`, value: summary[name] });
    }
  }
  if (typeof torch !== "string") {
    for (const { batch, prefill, denoise } of torch.batches) {
      all.push({ part: "torch", batch, figure: "prefill_p50_ms", value: prefill });
      all.push({ part: "torch", batch, figure: "denoise_p50_ms", value: denoise });
    }
  }
  return all;
}

function wordsOf(part: string): string {
  return part === "together" ? "frames with it" : "frames before";
}

const MS = (value: number) => (Number.isFinite(value) ? value.toFixed(value < 10 ? 3 : 2) : "-");
const PERCENT = (value: number) => (Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "-");
const COUNT = (value: number) => (Number.isFinite(value) ? value.toFixed(value < 10 ? 2 : 0) : "-");

/** Stations against sizes of a batch, the median and the 99th percentile of each. */
export function stationRows({ batches }: GpuMeasurement): Rows {
  const measured = batches.filter(({ rounds }) => rounds.length > 0);
  const head = ["ms", ...measured.flatMap(({ asked }) => [`batch ${asked} p50`, "p99"])];
  const row = (name: string, times: (batch: Batch) => number[]) => [
    name,
    ...measured.flatMap((batch) => [50, 99].map((percent) => MS(percentile(times(batch), percent)))),
  ];
  const timed = TIMED.filter((what) => measured.some((batch) => timedOf(batch, what).length > 0));
  return [
    head,
    ...STATION_NAMES.map((station) => row(station, (batch) => timesOf(batch, station))),
    ...timed.map((what) => row(TIMED_NAMES[what], (batch) => timedOf(batch, what))),
  ];
}

export function rooflineRows({ batches }: GpuMeasurement): Rows {
  const rows = batches
    .filter(({ rounds }) => rounds.length > 0)
    .flatMap((batch) =>
      (["prefill", "denoise"] as const).map((station) => {
        const { flops, bytes, bound, leastMs } = batch.roof[station];
        const ms = workMs(batch, station);
        return [
          String(batch.asked),
          station,
          (flops / 1e9).toPrecision(4),
          (bytes / 1e6).toPrecision(4),
          (flops / ms / 1e9).toPrecision(3),
          (bytes / ms / 1e6).toPrecision(3),
          MS(leastMs ?? Number.NaN),
          PERCENT(achieved(batch, station)),
          bound ?? "-",
        ];
      }),
    );
  return [["batch", "station", "GFLOP", "MB", "TFLOP/s", "GB/s", "least ms", "achieved", "bound by"], ...rows];
}

export function throughputRows({ batches, chunkPlaysMs }: GpuMeasurement): Rows {
  const rows = batches
    .filter(({ rounds }) => rounds.length > 0)
    .map((batch) => {
      const rate = perSecond(batch);
      return [
        String(batch.asked),
        COUNT(rate),
        COUNT((rate * chunkPlaysMs) / 1000),
        batch.allocationsPerChunk.toFixed(2),
        COUNT(batch.drawn?.watts ?? Number.NaN),
        COUNT(jouleOf(batch)),
        COUNT((batch.drawn?.memoryBytes ?? Number.NaN) / 2 ** 30),
      ];
    });
  return [["batch", "chunks/s", "robots fed", "allocations", "W", "J/chunk", "card GiB"], ...rows];
}

export function sessionRows({ sessions }: GpuMeasurement): Rows {
  const rows = sessions.counts.map(({ sessions: count, memoryBytes, chunkMs }) => [
    String(count),
    (memoryBytes / 2 ** 20).toFixed(1),
    MS(chunkMs),
  ]);
  return [["sessions", "memory MiB", "chunk ms"], ...rows];
}

export function socketRows({ socket }: GpuMeasurement): Rows {
  if (typeof socket === "string") return [];
  const rows = Object.entries(socket).map(([part, one]) => [wordsOf(part), MS(one.p50), MS(one.p99), MS(one.max)]);
  return [["ms", "p50", "p99", "max"], ...rows];
}

export function torchRows({ torch, batches }: GpuMeasurement): Rows {
  if (typeof torch === "string") return [];
  const rows = torch.batches.map(({ batch, prefill, denoise }) => {
    const own = batches.find(({ asked }) => asked === batch);
    const times = own && [median(timesOf(own, "prefill")), median(timesOf(own, "denoise"))];
    const ratio = times === undefined ? Number.NaN : ((times[0] ?? 0) + (times[1] ?? 0)) / (prefill + denoise);
    return [String(batch), MS(prefill), MS(denoise), Number.isFinite(ratio) ? ratio.toFixed(2) : "-"];
  });
  return [["batch", "prefill ms", "denoise ms", "tendon to it"], ...rows];
}
