/** `tendon runs push`: a folder becomes a run; what is there already is not sent again. */
import { basename, join, resolve } from "node:path";
import { runText } from "../../client/runs/names.ts";
import type { PushReport } from "../../client/runs/push.ts";
import { push } from "../../client/runs/push.ts";
import { signedIn } from "../../client/sign-in.ts";
import { folders } from "../../config/environment.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import type { RunName } from "../../std/run-names.ts";
import { BASE_URL_FLAG, type Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { bytesText, filesText } from "./amounts.ts";
import { checkedName } from "./run-name.ts";
import { PARALLEL, transferred } from "./transfer.ts";

export const runsPush: Command = {
  name: "runs push",
  summary: "Store a folder as a run. After a cut the same command sends the rest.",
  positionals: "DIR",
  flags: {
    robot: { value: "NAME", required: true, about: "The robot whose run it is." },
    run: { value: "NAME", about: "Name of the run (default: that of the folder)." },
    metadata: { value: "FILE", about: "JSON object that is kept with the run." },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print what was done as one JSON object." },
  },
  async run(given) {
    const folder = given.word(0);
    const name = given.text("run") ?? basename(resolve(folder));
    const run = checkedName(runsPush, { robot: given.required("robot"), run: name });
    if (run instanceof Problem) return run;
    const metadata = await metadataOf(given.text("metadata"));
    if (metadata instanceof Problem) return metadata;
    const service = await signedIn(given.text("base-url"));
    if (service instanceof Problem) return service;
    const wanted = { folder, run, metadata, parallel: PARALLEL, recordsDir: join(folders().cache, "pushes") };
    const pushed = await transferred(given, (watcher, signal) => push(service, wanted, watcher, { signal }));
    if (pushed instanceof Problem) return pushed;
    return await answer(given, { ...run, ...pushed }, pushedText(run, pushed));
  },
};

/** Undefined when no file is named. */
async function metadataOf(path: string | undefined): Promise<object | undefined | Problem> {
  if (path === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = await Bun.file(path).json();
  } catch (error) {
    return new Problem(`--metadata '${path}' cannot be read as JSON: ${(error as Error).message}`, EXIT.usage);
  }
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
  return new Problem(`--metadata '${path}' is not a JSON object, for example {"task":"fold"}`, EXIT.usage);
}

function pushedText(run: RunName, { state, files, size, sent }: PushReport): string {
  const whole = `${runText(run)}: ${filesText(files)}, ${bytesText(size)}`;
  if (state === "already_there") return `${whole}, already there`;
  return `${whole}, complete (${filesText(sent.files)} sent now, ${bytesText(sent.bytes)})`;
}
