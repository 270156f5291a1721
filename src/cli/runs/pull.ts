/** `tendon runs pull`: a run becomes a folder; what is there already is not fetched again. */
import { runText } from "../../client/runs/names.ts";
import { pull } from "../../client/runs/pull.ts";
import { signedIn } from "../../client/sign-in.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { BASE_URL_FLAG, type Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { bytesText, filesText } from "./amounts.ts";
import { namedRun } from "./run-name.ts";
import { PARALLEL, transferred } from "./transfer.ts";

export const runsPull: Command = {
  name: "runs pull",
  summary: "Fetch a run into a folder, each file checked. After a cut the same command fetches the rest.",
  positionals: "ROBOT RUN [DIR]",
  flags: {
    "base-url": BASE_URL_FLAG,
    json: { about: "Print what was done as one JSON object." },
  },
  async run(given) {
    const run = namedRun(runsPull, given);
    if (run instanceof Problem) return run;
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    const folder = given.positionals[2] ?? run.run;
    const pulled = await transferred(given, (watcher, signal) =>
      pull(service, { run, folder, parallel: PARALLEL }, watcher, { signal }),
    );
    if (pulled instanceof Problem) return pulled;
    const { manifest, fetched, there } = pulled;
    const { size, files } = manifest;
    const way = `${filesText(fetched.files)} fetched now, ${bytesText(fetched.bytes)}`;
    return await answer(
      given,
      { ...run, folder, size, files: files.length, fetched, there },
      `${runText(run)}: ${filesText(files.length)}, ${bytesText(size)}, in ${printable(folder)} (${way})`,
    );
  },
};
