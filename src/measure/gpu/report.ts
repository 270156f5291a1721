/** The report of `tendon bench gpu`: a block for each bundle and device, with what was measured and what was not, and why. */
import { deviceWeightWords } from "../../engine/device-weights.ts";
import { type Align, table } from "../../std/text-table.ts";
import { html } from "../../web/markup.ts";
import type { Origin } from "../origin.ts";
import { chartFigure } from "../page/chart.ts";
import { reportPage, type Section, tableOf } from "../page/page.ts";
import { headLines, nameOf, type Report, reportCsv } from "../report.ts";
import { median } from "../stats.ts";
import * as figures from "./figures.ts";
import type { GpuMeasurement } from "./suite.ts";

const QUESTION = "Where does the time of a chunk go on this device, and how near is that to what the device can do?";

const MEANING = [
  "Times: the wall clock of the thread that runs the graphs; each run returns when the device has ended it. Device prefill, device denoise: from the begin",
  "to the end of each run by events in the stream of the replica; what the device waits for there while ONNX Runtime launches is in it, copies",
  "are not. Host: model without both, copies included. Decode: processor time of the",
  "host for the frames of one observation, before the rest begins. Prefill: tensors filled and copied to the device, then the graph. Denoise: all",
  "flow steps. Encode: rows into robot units. Model: from the begin of prefill to the rows. Copy: what goes to the device and back is part of prefill",
  "and denoise, and has no time of its own; its bytes are counted. Batch: so many observations ran together, and each number is of the whole batch.",
  "Robots fed: those whose chunks the device computes as fast as they are played. Allocations: of the native library on the host, for each chunk.",
  "GFLOP: products of the graphs, counted from their nodes, two for each multiply-add. MB: weights as they are kept, each once a run, and what goes in and",
  "out of the graph. Least: the longer of both on the card by its data sheet. Achieved: that time over the device's, or the measured one. Sessions: episodes of a model with",
  "memory, each in its turn. Socket: from the first byte of a robot's frames, or of its observation where the frames went 20 ms before, to the last row,",
  "over a WebSocket of a service on this machine, its durable record included. Outside the window: the network, taking pictures, loading,",
  "the first rounds. Random weights take as long as trained ones.",
];

export function gpuReport(from: Origin, measurements: readonly GpuMeasurement[]): Report {
  return {
    json: {
      ...{ suite: "gpu", ...from, question: QUESTION, meaning: MEANING.join(" ") },
      measurements: measurements.map(jsonOf),
    },
    csv: reportCsv(["part", "batch", "figure", "value"], from, measurements, (one) =>
      figures
        .figuresOf(one)
        .map(({ part, batch, figure, value }) => [
          part,
          batch,
          figure,
          Number.isFinite(value) ? Number(value.toPrecision(6)) : "",
        ]),
    ),
    text: textOf(from, measurements),
    html: reportPage({
      suite: "gpu",
      question: QUESTION,
      from,
      meaning: MEANING,
      sections: measurements.flatMap(sectionsOf),
    }),
  };
}

function jsonOf(one: GpuMeasurement): object {
  const { model, device, robots, reference, weights, gpu, refused, card, roofCard, unknown } = one;
  const { cardUnknown, parity, sessions, socket, torch, driver } = one;
  return {
    ...{ model, device, robots, reference, weights, gpu, refused, card, roof_card: roofCard, unknown },
    ...{
      card_unknown: cardUnknown ?? null,
      parity: parity ?? null,
      driver: driver ?? null,
    },
    figures: figures
      .figuresOf(one)
      .map((figure) => ({ ...figure, value: Number.isFinite(figure.value) ? figure.value : null })),
    sessions_end: sessions.end,
    sessions_refused: sessions.refused ?? null,
    ...(typeof socket === "string" && { socket }),
    torch: typeof torch === "string" ? torch : { version: torch.version, how: torch.how, weights: torch.weights },
  };
}

interface Part {
  readonly heading: string;
  readonly rows: figures.Rows;
  /** Said below it, or in its place. */
  readonly note?: string | undefined;
}

function partsOf(one: GpuMeasurement): Part[] {
  const { batches, sessions, socket, torch } = one;
  const last = batches.at(-1);
  const alone =
    last !== undefined && last.rounds.length === 0
      ? `Of ${last.asked} observations at once ${one.device} ran ${last.batch} together: larger batches were not measured.`
      : undefined;
  return [
    {
      heading: "Stations",
      rows: figures.stationRows(one),
      note: [alone, eventNote(one)].filter(Boolean).join(" ") || undefined,
    },
    { heading: "Roofline", rows: figures.rooflineRows(one), note: roofNote(one) },
    { heading: "Throughput", rows: figures.throughputRows(one), note: powerNote(one) },
    {
      heading: "Sessions",
      rows: sessions.counts.length > 0 ? figures.sessionRows(one) : [],
      note: sessionNote(one),
    },
    { heading: "Over a socket", rows: figures.socketRows(one), note: typeof socket === "string" ? socket : undefined },
    {
      heading: "PyTorch",
      rows: figures.torchRows(one),
      note:
        typeof torch === "string"
          ? torch
          : `torch ${torch.version}, ${torch.how}; ${(torch.weights / 1e6).toPrecision(4)} million weights. Its times are those of CUDA events, without the copies of inputs that are in ours, and were taken after ours.`,
    },
  ];
}

function sessionNote({ sessions: { counts, refused, end } }: GpuMeasurement): string {
  const fit = counts.at(-1)?.sessions;
  if (fit === undefined) return `None: ${end}.`;
  return refused === undefined ? `There were no more: ${end}.` : `${fit} fit, ${refused} did not: ${end}.`;
}

/** Why an NVIDIA GPU has no times of its own. */
function eventNote({ driver }: GpuMeasurement): string | undefined {
  return driver?.untimed === undefined ? undefined : `No device times: ${driver.untimed}.`;
}

function roofNote({ card, cardUnknown, roofCard, unknown, device }: GpuMeasurement): string {
  if (unknown.length > 0) return `No roofline: it does not know the work of ${unknown.join(", ")}.`;
  if (roofCard !== undefined) {
    const { name, bytesPerSecond, source } = roofCard;
    return `Against the card ${name}: ${bytesPerSecond / 1e9} GB/s and its dense products (${source}).`;
  }
  if (cardUnknown !== undefined) return `No roofline: which card ${device} is, is not known: ${cardUnknown}.`;
  return card === undefined
    ? `No roofline: ${device} is no card that is known here.`
    : `No roofline: the figures of ${card.name} are not in the table of cards.`;
}

function powerNote({ card, cardUnknown, batches }: GpuMeasurement): string {
  if (cardUnknown !== undefined) return `Power: not read, ${cardUnknown}.`;
  if (card === undefined) return "Power: not read, no nvidia-smi tells of this device.";
  const drawn = batches.some((batch) => Number.isFinite(batch.drawn?.watts));
  const limit = `${card.name}, limit ${card.watts} W, driver ${card.driver}`;
  return drawn
    ? `Power: by nvidia-smi, the median while a batch size ran; ${limit}.`
    : `Power: nvidia-smi gave none; ${limit}.`;
}

/** How the steps of a flow were run. */
const FLOWS = { steps: "one by one", whole: "in one graph", captured: "in one captured graph" } as const;

/** By how much rows were off, and by how much they could be. */
function parityWords({ parity }: GpuMeasurement): string {
  if (parity === undefined) return "nobody has computed its rows, so nothing tells whether they are right";
  const { differences, bound, tolerance } = parity;
  const most = Math.max(...differences);
  const differ = `rows differ by at most ${most.toExponential(1)}, bound ${bound.toExponential(1)}`;
  if (bound === tolerance) return differ;
  const own = `--within, in place of the bundle's ${tolerance.toExponential(1)}`;
  return `${differ} (${own}${most > tolerance ? ", with which no service loads it here" : ""})`;
}

function factsOf(one: GpuMeasurement): string {
  const { weights, steps, flow, loadMs, deviceBytes, copies, deviceWeights, driver, gpu, refused } = one;
  const device =
    deviceBytes === 0 ? "no tensor of it stays on a device" : `${kilobytes(deviceBytes)} of tensors stay on it`;
  const held = deviceWeightWords(deviceWeights);
  const kept = held === undefined ? "" : `${held}, `;
  const moved = copies.toDevice + copies.fromDevice;
  const copied =
    moved === 0
      ? "nothing is copied"
      : `${kilobytes(copies.toDevice)} to it and ${kilobytes(copies.fromDevice)} back a chunk`;
  const options = `precision ${gpu.precision}, cuda_graph ${gpu.cudaGraph}, own_kernels ${gpu.ownKernels}`;
  const others = refused.map(({ device, reason }) => ` Refused before it: ${device} (${reason}).`).join("");
  const direct =
    driver === undefined
      ? ""
      : `, ${kilobytes(driver.registeredBytes)} of the host's registered${driver.unregistered === undefined ? "" : ` and no more: ${driver.unregistered}`}`;
  return `${weights} weights, ${steps} steps ${FLOWS[flow]}, loaded and computed in ${(loadMs / 1000).toFixed(1)} s; ${parityWords(one)}; ${kept}${device}, ${copied}${direct}; ${options}.${others}`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(0)} kB`;
}

const alignOf = (rows: figures.Rows): Align[] => (rows[0] ?? []).map((_, at) => (at === 0 ? "left" : "right"));

/** A line of a terminal. */
const COLUMNS = 160;

function textOf(from: Origin, measurements: readonly GpuMeasurement[]): string {
  const lines = [...headLines("gpu", from), QUESTION];
  for (const one of measurements) {
    lines.push("", nameOf(one), ...wrapped(factsOf(one)));
    for (const { heading, rows, note } of partsOf(one)) {
      lines.push("", heading);
      if (rows.length > 1) lines.push(table(rows, alignOf(rows)).trimEnd());
      if (note !== undefined) lines.push(...wrapped(note));
    }
  }
  return `${[...lines, "", ...MEANING].join("\n")}\n`;
}

function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < COLUMNS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function sectionsOf(one: GpuMeasurement): Section[] {
  const parts = partsOf(one).map(({ heading, rows, note }) => {
    const [head = [], ...body] = rows;
    const said = note === undefined ? undefined : html`<p class="soft">${note}</p>`;
    return html`<h3>${heading}</h3>${body.length > 0 ? tableOf(head, body, alignOf(rows)) : undefined}${said}`;
  });
  return [
    {
      heading: `${one.model} on ${one.device}`,
      note: `${nameOf(one)}. ${factsOf(one)}`,
      content: [...parts, chartOf(one)],
    },
  ];
}

/** Time against the size of a batch, and what the card would need. */
function chartOf({ batches }: GpuMeasurement) {
  const measured = batches.filter(({ rounds }) => rounds.length > 0);
  const series = (["prefill", "denoise"] as const).flatMap((station) => {
    const times = measured.map((batch) => [batch.asked, median(figures.timesOf(batch, station))] as const);
    const least = measured.flatMap(({ asked, roof }) => {
      const ms = roof[station].leastMs;
      return ms === undefined ? [] : [[asked, ms] as const];
    });
    const own = { name: station, points: times, dots: true };
    return least.length > 0 ? [own, { name: `${station}, least`, points: least, dashed: true, dots: true }] : [own];
  });
  const ticks = measured.map(({ asked }) => ({ at: asked, text: String(asked) }));
  return chartFigure({
    caption: "Median time of a batch by its size, and the least that the card's figures allow",
    x: { title: "observations at once", scale: "log", ticks },
    y: { title: "ms", scale: "linear" },
    series,
  });
}
