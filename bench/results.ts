/** `bench/results/<machine>.csv`: one line per figure, newest run of each proof. */
import { type Origin, versionsText } from "../src/measure/origin.ts";
import type { Figure } from "./proof.ts";

const HEAD = "proof,measure,value,unit,limit,date,commit,versions,cpu,cores,gpu";

/** `amd-epyc-7b13-2-cores`: the file name of a machine. */
export function machineName({ machine }: Origin): string {
  const cpu = machine.cpu
    .toLowerCase()
    .replace(/\((r|tm)\)/g, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
  return `${cpu}-${machine.cores}-cores`;
}

/** The file's text with the lines of `proof` replaced by these figures; lines stay grouped by proof, in order of name. */
export function mergeResults(before: string, proof: string, from: Origin, rows: readonly Figure[]): string {
  const { machine } = from;
  const kept = before.split("\n").filter((line) => line !== "" && line !== HEAD && !line.startsWith(`${proof},`));
  const added = rows.map(({ measure, value, unit, limit }) =>
    [
      ...[proof, measure, Number(value.toPrecision(6)), unit, limit ?? ""],
      ...[from.date, from.commit, versionsText(from), machine.cpu, machine.cores, machine.gpu],
    ]
      .map((cell) => String(cell).replaceAll(",", ";").replaceAll("\n", " "))
      .join(","),
  );
  const proofOf = (line: string): string => line.slice(0, line.indexOf(","));
  const lines = [...kept, ...added].sort((a, b) => proofOf(a).localeCompare(proofOf(b), "en"));
  return `${[HEAD, ...lines].join("\n")}\n`;
}
