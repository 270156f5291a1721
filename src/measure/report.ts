/** The parts that the reports of all suites share: the origin of the figures and a block for each measurement. */
import { type Origin, versionsText } from "./origin.ts";
import type { Measurement } from "./target.ts";

/** The figures of a suite: all of them as JSON, and as a text for people. */
export interface Report {
  readonly json: object;
  readonly text: string;
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

/** The first lines of every report for people. */
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
