/** `tendon runs show`: the manifest of a run. */
import { runText } from "../../client/runs/names.ts";
import type { Manifest } from "../../client/runs/records.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { table } from "../../std/text-table.ts";
import { BASE_URL_FLAG, type Command } from "../frame/command.ts";
import { bytesText, filesText, timeText } from "./amounts.ts";
import { asked, namedRun } from "./run-name.ts";

export const runsShow: Command = {
  name: "runs show",
  summary: "Show the files and the metadata of a completed run.",
  positionals: "ROBOT RUN",
  flags: {
    "base-url": BASE_URL_FLAG,
    json: { about: "Print the run's manifest as one JSON object." },
  },
  async run(given) {
    const run = namedRun(runsShow, given);
    if (run instanceof Problem) return run;
    return await asked(given, (runs) => runs.manifest(run), manifestText);
  },
};

function manifestText(manifest: Manifest): string {
  const { files, size, completed_at, metadata } = manifest;
  const rows = files.map((file) => [
    printable(file.path),
    bytesText(file.size),
    printable(file.content_type),
    file.sha256,
  ]);
  const head = `${printable(runText(manifest))}: ${filesText(files.length)}, ${bytesText(size)}, completed ${timeText(completed_at)}`;
  const facts = Object.keys(metadata).length === 0 ? "" : `\nmetadata ${printable(JSON.stringify(metadata))}\n`;
  const columns = table([["path", "size", "type", "sha256"], ...rows], ["left", "right", "left", "left"]);
  return `${head}\n\n${columns}${facts}`;
}
