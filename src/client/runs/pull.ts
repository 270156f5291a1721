/** A completed run becomes a local folder. A pull that was cut is repeated with the same words and fetches the rest. */
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { lockFile } from "../../std/file-lock.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { pathProblem, type RunName } from "../../std/run-names.ts";
import type { Service } from "../http.ts";
import { RunsClient, type RunsOptions } from "../runs.ts";
import { bytesOf } from "./folder.ts";
import { settle } from "./partial.ts";
import { FilePull } from "./pull-file.ts";
import { Queue } from "./queue.ts";
import type { Manifest } from "./records.ts";
import type { Amount, Watcher } from "./watcher.ts";

export interface Pull {
  readonly run: RunName;
  readonly folder: string;
  /** Requests at once. */
  readonly parallel: number;
}

export interface PullReport {
  readonly manifest: Manifest;
  readonly fetched: Amount;
  /** Files that were there already. */
  readonly there: Amount;
}

export async function pull(
  service: Service,
  { run, folder, parallel }: Pull,
  watcher: Watcher,
  options: Omit<RunsOptions, "waiting"> = {},
): Promise<PullReport | Problem> {
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const client = new RunsClient(service, { ...options, waiting: watcher.waiting.bind(watcher), signal });
  const manifest = await client.manifest(run);
  if (manifest instanceof Problem) return manifest;
  const wrong = manifestProblem(manifest);
  if (wrong !== undefined) return wrong;
  const top = await made(folder);
  if (top instanceof Problem) return top;
  const { files } = manifest;
  const paths = new Set(files.map(({ path }) => path));
  const unlock = locked(folder, paths);
  if (unlock instanceof Problem) return unlock;
  watcher.begun({ files: files.length, bytes: bytesOf(files), skipped: [] });
  const amounts = { fetched: { files: 0, bytes: 0 }, there: { files: 0, bytes: 0 } };
  const queue = new Queue(parallel, () => failed.abort());
  for (const file of files) {
    queue.add(async () => {
      const way = await new FilePull(run, file, { client, watcher, folder, paths }).pulled();
      if (way instanceof Problem) return way;
      amounts[way].files += 1;
      amounts[way].bytes += file.size;
      watcher.fileDone();
      return undefined;
    });
  }
  try {
    return (await queue.run()) ?? (await settle(folder, top, paths)) ?? { manifest, ...amounts };
  } finally {
    await unlock();
  }
}

/** Keeps other pulls out of the folder: two would write into one partial file. */
function locked(folder: string, paths: ReadonlySet<string>): (() => Promise<void>) | Problem {
  const taken = new Set([...paths].map((path) => path.split("/")[0]));
  let name = ".tendon-pull";
  while (taken.has(name)) name += ".lock";
  const path = join(folder, name);
  try {
    const release = lockFile(path);
    if (release === "held") {
      return new Problem(
        `another tendon runs pull writes into '${printable(folder)}'; wait for its end, or name another folder`,
        EXIT.usage,
      );
    }
    return async () => {
      await rm(path, { force: true }).catch(() => {});
      release();
    };
  } catch (error) {
    return new Problem(`the folder '${printable(folder)}' cannot be locked: ${(error as Error).message}`);
  }
}

/** A service that lists such a path is no tendon service, or wants to write where it must not. */
function manifestProblem({ files }: Manifest): Problem | undefined {
  const seen = new Set<string>();
  for (const { path } of files) {
    const wrong = pathProblem(path.split("/")) ?? (seen.has(path) ? "is listed twice" : undefined);
    if (wrong !== undefined)
      return new Problem(`the run lists the file '${printable(path)}', whose path ${wrong}; nothing was written`);
    seen.add(path);
  }
  return undefined;
}

/** The nearest folder on its way that was there before. */
async function made(folder: string): Promise<string | Problem> {
  try {
    const first = await mkdir(folder, { recursive: true });
    return first === undefined ? folder : dirname(first);
  } catch (error) {
    return new Problem(`the folder '${printable(folder)}' cannot be made: ${(error as Error).message}`);
  }
}
