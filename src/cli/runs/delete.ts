/** `tendon runs delete`: every file of a run, complete or not, for good. */
import { createInterface } from "node:readline/promises";
import { type RunName, runText } from "../../client/runs/names.ts";
import { isCode, type RunsClient } from "../../client/runs.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { BASE_URL_FLAG, type Command, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { bytesText, filesText } from "./amounts.ts";
import { namedRun, runsOf } from "./run-name.ts";

export const runsDelete: Command = {
  name: "runs delete",
  summary: "Delete a run with all its files, complete or not.",
  positionals: "ROBOT RUN",
  flags: {
    yes: { about: "Do not ask." },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print what was done as one JSON object." },
  },
  async run(given) {
    const named = namedRun(runsDelete, given);
    if (named instanceof Problem) return named;
    const { run } = named;
    const asks = !given.on("yes");
    if (asks && !(process.stdin.isTTY && process.stderr.isTTY)) {
      return usageProblem(runsDelete, "there is no terminal to ask at; --yes deletes without asking");
    }
    const client = await runsOf(given);
    if (client instanceof Problem) return client;
    const refused = asks ? await askedFirst(client, run) : undefined;
    if (refused !== undefined) return refused;
    const problem = await client.remove(run);
    return problem ?? (await answer(given, { ...run, deleted: true }, `deleted ${runText(run)}`));
  },
};

async function askedFirst(client: RunsClient, run: RunName): Promise<Problem | undefined> {
  const manifest = await client.manifest(run);
  const open = isCode(manifest, "run_not_found");
  if (manifest instanceof Problem && !open) return manifest;
  const what =
    manifest instanceof Problem ? "not completed" : `${filesText(manifest.files.length)}, ${bytesText(manifest.size)}`;
  const said = await lineFrom(`Delete ${runText(run)} (${what}) for good? [y/N] `);
  return /^y(es)?$/i.test(said.trim()) ? undefined : new Problem("nothing was deleted", EXIT.failed);
}

/** A line from the terminal; empty at its end. */
async function lineFrom(question: string): Promise<string> {
  process.stderr.write(question);
  const reader = createInterface({ input: process.stdin, terminal: false });
  try {
    for await (const line of reader) return line;
    return "";
  } finally {
    reader.close();
  }
}
