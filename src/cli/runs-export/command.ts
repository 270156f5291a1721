/** `tendon runs export DIR… --lerobot OUT`: recorded runs as a dataset that trainers read. */
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { randomBase62 } from "../../std/ids.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { type Command, type CommandLine, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { type Dataset, writeDataset } from "./lerobot/dataset.ts";

const FPS_MAX = 1000;

export const exportRun: Command = {
  name: "runs export",
  summary:
    "Write recorded runs, one folder each, as a LeRobot dataset v3.0: an episode per run. Videos and frames stay as they are.",
  positionals: "DIR…",
  flags: {
    lerobot: { value: "OUT", about: "Folder of the dataset: a new or empty one.", required: true },
    task: { value: "TEXT", about: "What the robot did (default: the log's instruction)." },
    fps: {
      value: "N",
      about: "Rows a second of runs without videos (default: the median rate of their observations).",
    },
    json: { about: "Print what was written as one JSON object." },
  },
  async run(given) {
    const { positionals: runs } = given;
    const fps = rateOf(given);
    if (fps instanceof Problem) return fps;
    const out = resolve(given.required("lerobot"));
    const dataset = await whole(out, (folder) => writeDataset(runs, folder, { task: given.text("task"), fps }));
    return dataset instanceof Problem ? dataset : answer(given, { dir: out, ...dataset }, told(out, dataset));
  },
};

function rateOf(given: CommandLine): number | undefined | Problem {
  const text = given.text("fps");
  if (text === undefined) return undefined;
  const fps = /^\d{1,4}(\.\d{1,3})?$/.test(text) ? Number(text) : 0;
  if (fps > 0 && fps <= FPS_MAX) return fps;
  return usageProblem(
    exportRun,
    `--fps is '${text}', expected a number up to ${FPS_MAX} with at most three decimal places`,
  );
}

/** Runs `write` on a folder beside `out`, which becomes `out` when all is written: a dataset is whole or not there. */
async function whole<T>(out: string, write: (folder: string) => Promise<T | Problem>): Promise<T | Problem> {
  const beside = `${out}.${randomBase62(8)}`;
  try {
    if (!(await isVacant(out))) return new Problem(`'${out}' is not empty; name a new folder for the dataset`);
    await mkdir(beside, { recursive: true });
    const written = await write(beside);
    // An empty folder gives way to one that takes its name.
    if (!(written instanceof Problem)) await rename(beside, out);
    return written;
  } catch (error) {
    return new Problem(`cannot write the dataset to '${out}': ${(error as Error).message}`);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** Nothing is there, or a folder without anything in it. */
async function isVacant(path: string): Promise<boolean> {
  try {
    return (await readdir(path)).length === 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
}

function told(out: string, { episodes, frames, fps, cameras, tasks }: Dataset): string {
  const views = cameras.length === 0 ? "no cameras" : `cameras ${cameras.join(", ")}`;
  return `${out}: ${episodes} episodes, ${frames} rows at ${fps} a second, ${views}\ntasks: ${tasks.map(printable).join("; ")}`;
}
