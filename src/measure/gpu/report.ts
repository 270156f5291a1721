/** The report of `tendon bench gpu`: a block for each bundle and device, with what was measured and what was not, and why. */
import { deviceWeightWords } from "../../bundle/describe.ts";
import type { Origin } from "../origin.ts";
import { headLines, nameOf, type Report } from "../report.ts";
import { figuresOf, tableOf } from "./figures.ts";
import type { GpuMeasurement } from "./suite.ts";

const QUESTION = "Where does the time of a chunk go on this device?";

const MEANING = [
  "Times: the wall clock of the thread that computes the graphs; each graph returns when the device has ended it. Device prefill, device denoise:",
  "from the begin to the end of each graph by events in the stream of the replica. The time that the device waits there while ONNX Runtime",
  "launches is in it, copies are not. Host: model without both, copies included. Decode: processor time of the host for the frames of one",
  "observation, before the rest begins. Prefill: tensors filled and copied to the device, then the graph. Denoise: all flow steps.",
  "Encode: rows into robot units. Model: from the begin of prefill to the rows. Batch: observations that ran together; each time is of",
  "the whole batch. Robots fed: those whose chunks the device computes as fast as they are played. Allocations: of the native library on",
  "the host, for each chunk. Socket: from the first byte of a robot's frames, or of its observation where the",
  "frames went 20 ms before, to the last row, over a WebSocket of a service on this machine, its durable record included.",
  "Outside the window: the network, taking pictures, loading, the first rounds. Random weights take as long as trained ones.",
];

export function gpuReport(from: Origin, measurements: readonly GpuMeasurement[]): Report {
  return {
    json: {
      ...{ suite: "gpu", ...from, question: QUESTION, meaning: MEANING.join(" ") },
      measurements: measurements.map(jsonOf),
    },
    text: textOf(from, measurements),
  };
}

function jsonOf(one: GpuMeasurement): object {
  const { model, device, robots, reference, weights, gpu, refused, parity, driver, socket } = one;
  return {
    ...{ model, device, robots, reference, weights, gpu, refused },
    ...{ parity: parity ?? null, driver: driver ?? null },
    figures: figuresOf(one).map((figure) => ({ ...figure, value: finite(figure.value) })),
    ...(typeof socket === "string" && { socket }),
  };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}

/** What was not measured, and why. */
function lacking({ batches, socket, device, driver }: GpuMeasurement): string[] {
  const [last] = batches.slice(-1).filter(({ rounds }) => rounds.length === 0);
  const words = [];
  if (last)
    words.push(
      `Of ${last.asked} observations at once ${device} ran ${last.batch} together: larger batches were not measured.`,
    );
  if (driver?.timesReason !== undefined) words.push(`No device times: ${driver.timesReason}.`);
  if (typeof socket === "string") words.push(`No times over a socket: ${socket}.`);
  return words;
}

/** How the steps of a flow were computed. */
const FLOWS = {
  none: "without a flow",
  steps: "one by one",
  whole: "in one graph",
  captured: "in one captured graph",
} as const;

/** The difference of the rows, and the largest that was allowed. */
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
  const { registeredBytes = 0, registrationReason } = driver ?? {};
  const facts = [
    `${weights} weights, ${steps} steps ${FLOWS[flow]}, loaded and computed in ${(loadMs / 1000).toFixed(1)} s`,
    parityWords(one),
    deviceWeightWords(deviceWeights),
    deviceBytes === 0 ? "no tensor of it stays on a device" : `${kilobytes(deviceBytes)} of tensors stay on it`,
    copies.toDevice + copies.fromDevice === 0
      ? "nothing is copied"
      : `${kilobytes(copies.toDevice)} to it and ${kilobytes(copies.fromDevice)} back a chunk`,
    registeredBytes > 0 ? `${kilobytes(registeredBytes)} of the host's registered` : undefined,
    registrationReason === undefined ? undefined : `no more registered: ${registrationReason}`,
    optionWords(gpu),
    ...refused.map(({ device, reason }) => `refused before it: ${device} (${reason})`),
  ];
  return `${facts.filter((fact) => fact !== undefined).join("; ")}.`;
}

/** The keys of `[gpu]` as the configuration has them. */
function optionWords(gpu: GpuMeasurement["gpu"]): string {
  const words = Object.entries(gpu).flatMap(([name, value]) => {
    const key = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return value === undefined ? [] : [`${key} ${value}`];
  });
  return words.join(", ");
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(0)} kB`;
}

/** A line of a terminal. */
const COLUMNS = 160;

function textOf(from: Origin, measurements: readonly GpuMeasurement[]): string {
  const lines = [...headLines("gpu", from), QUESTION];
  for (const one of measurements) {
    lines.push("", nameOf(one), ...wrapped(factsOf(one)));
    lines.push("", tableOf(figuresOf(one)).trimEnd(), ...lacking(one).flatMap(wrapped));
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
