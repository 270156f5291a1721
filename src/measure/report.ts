/** What the reports of all suites share: where the figures come from, a block per measurement, lines of CSV. */
import { type Origin, versionsText } from "./origin.ts";
import type { Measurement } from "./target.ts";

/** A suite's figures in each form that `tendon bench` can write. */
export interface Report {
  readonly json: object;
  readonly csv: string;
  readonly text: string;
  /** A page that needs nothing beside it. */
  readonly html: string;
}

/** The report for people. `block`: a measurement's length, such as `8 s`, and its figures; `meaning` explains them below. */
export function reportText<M extends Measurement>(
  suite: string,
  from: Origin,
  measurements: readonly M[],
  block: (measurement: M) => { readonly length: string; readonly lines: readonly string[] },
  meaning: readonly string[],
): string {
  const parts = headLines(suite, from);
  for (const one of measurements) {
    const { length, lines } = block(one);
    parts.push("", `${nameOf(one)}: robots ${one.robots}, ${length}`, ...lines);
  }
  return `${[...parts, "", ...meaning].join("\n")}\n`;
}

/** Where the figures come from: the first lines of every report for people. */
export function headLines(suite: string, from: Origin): string[] {
  const { machine } = from;
  return [
    `tendon bench ${suite}   ${from.date}   commit ${from.commit}`,
    versionsText(from),
    `machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memory_gib} GiB, GPU ${machine.gpu}; ${machine.placement}`,
  ];
}

/** What was measured, and whether its rows mean anything. */
export function nameOf({ model, device, reference }: Measurement): string {
  return `${model} on ${device}${reference ? ", marked reference (random weights, or no model)" : ""}`;
}

/** Names a measurement within its report: `echo, 8 robots`. */
export function shortNameOf({ device, robots }: Pick<Measurement, "device" | "robots">): string {
  return `${device}, ${robots} ${robots === 1 ? "robot" : "robots"}`;
}

/** CSV whose lines begin with origin, model, device and robots; `rows` are the other cells of each measurement's lines. */
export function reportCsv<M extends Measurement>(
  columns: readonly string[],
  from: Origin,
  measurements: readonly M[],
  rows: (measurement: M) => readonly (readonly (string | number)[])[],
): string {
  const { cpu, cores, gpu } = from.machine;
  const origin = [from.date, from.commit, versionsText(from), cpu, cores, gpu];
  const head = [..."date,commit,versions,cpu,cores,gpu,model,device,robots".split(","), ...columns];
  const lines = measurements.flatMap((one) =>
    rows(one).map((cells) => [...origin, one.model, one.device, one.robots, ...cells].map(csvCell).join(",")),
  );
  return `${[head.join(","), ...lines].join("\n")}\n`;
}

function csvCell(value: string | number): string {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
