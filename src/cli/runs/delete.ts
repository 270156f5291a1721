/** `tendon runs delete`: every file of a run, complete or not, for good. */
import { runText } from "../../client/runs/names.ts";
import type { RunsClient } from "../../client/runs.ts";
import { Problem } from "../../std/problem.ts";
import { BASE_URL_FLAG, type Command, usageProblem } from "../frame/command.ts";
import { asked, namedRun } from "./run-name.ts";

export const runsDelete: Command = {
  name: "runs delete",
  summary: "Delete a run with all its files, complete or not.",
  positionals: "ROBOT RUN",
  flags: {
    yes: { about: "Needed: what is deleted cannot be had again." },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print what was done as one JSON object." },
  },
  async run(given) {
    const run = namedRun(runsDelete, given);
    if (run instanceof Problem) return run;
    if (!given.on("yes")) {
      return usageProblem(runsDelete, `${runText(run)} would be deleted for good; say with --yes that it shall be`);
    }
    const remove = async (runs: RunsClient) => (await runs.remove(run)) ?? { ...run, deleted: true };
    return await asked(given, remove, () => `deleted ${runText(run)}`);
  },
};
