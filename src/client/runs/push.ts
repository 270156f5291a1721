/**
 * A local folder becomes a run: what the service lacks is sent, then the run is completed. A push that was cut is repeated with the
 * same words and sends the rest.
 */
import { LIMITS } from "../../limits.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import type { RunName } from "../../std/run-names.ts";
import type { Service } from "../http.ts";
import { isCode, RunsClient, type RunsOptions } from "../runs.ts";
import { differencesOf } from "./difference.ts";
import { bytesOf, type FolderList, type LocalFile, scan } from "./folder.ts";
import { runText } from "./names.ts";
import { FilePush, type Tools } from "./push-file.ts";
import { PushRecord } from "./push-record.ts";
import { Queue } from "./queue.ts";
import type { Manifest, StoredFile } from "./records.ts";
import type { Amount, Watcher } from "./watcher.ts";

export interface Push {
  readonly folder: string;
  readonly run: RunName;
  readonly metadata?: object | undefined;
  /** Requests at once. */
  readonly parallel: number;
  /** The folder in which what was acknowledged is remembered. */
  readonly recordsDir: string;
}

export interface PushReport {
  readonly state: "completed" | "already_there";
  readonly size: number;
  readonly files: number;
  readonly sent: Amount;
  readonly skipped: readonly string[];
  readonly manifest: Manifest;
}

export async function push(
  service: Service,
  wanted: Push,
  watcher: Watcher,
  options: Omit<RunsOptions, "waiting"> = {},
): Promise<PushReport | Problem> {
  const scanned = await scan(wanted.folder);
  if (scanned instanceof Problem) return scanned;
  const tooLong = completeProblem(scanned, wanted);
  if (tooLong) return tooLong;
  const failed = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
  const waiting = watcher.waiting.bind(watcher);
  const client = new RunsClient(service, { ...options, waiting, signal });
  const { run, folder, recordsDir } = wanted;
  const manifest = await client.manifest(run);
  if (!(manifest instanceof Problem)) return await compared(manifest, wanted, scanned, { client, watcher });
  if (!isCode(manifest, "run_not_found")) return manifest;
  const record = await PushRecord.open(recordsDir, { url: service.url, run, folder });
  try {
    return await new Pushing(wanted, scanned, { client, record, watcher }, () => failed.abort()).pushed();
  } finally {
    await record.settled();
  }
}

/** What `complete` would refuse after all bytes have been sent: its body is known before the first one. */
function completeProblem({ files }: FolderList, { folder, metadata }: Push): Problem | undefined {
  const { runMetadataBytesMax, runJsonBytesMax } = LIMITS;
  const bytes = Buffer.byteLength(JSON.stringify(metadata ?? {}));
  if (bytes > runMetadataBytesMax) {
    const most = `a run keeps at most ${runMetadataBytesMax}`;
    return new Problem(`the metadata has ${bytes} bytes as JSON, and ${most}; put the rest into a file of the run`);
  }
  const listed = files.map(({ path, size }) => ({ path, size, sha256: "0".repeat(64) }));
  const whole = Buffer.byteLength(JSON.stringify({ files: listed, metadata }));
  if (whole <= runJsonBytesMax) return undefined;
  return new Problem(
    `'${printable(folder)}' cannot be one run: the list of its ${files.length} files has ${whole} bytes as JSON, at most ${runJsonBytesMax} are taken; shorten their paths, or divide it`,
  );
}

class Pushing {
  private readonly sent: Amount = { files: 0, bytes: 0 };
  /** Some files were not sent because the record says that they are there. */
  private trusted = false;

  constructor(
    private readonly wanted: Push,
    private readonly scanned: FolderList,
    private readonly tools: Tools,
    private readonly stop: () => void,
  ) {}

  async pushed(): Promise<PushReport | Problem> {
    const { scanned, tools } = this;
    const size = bytesOf(scanned.files);
    const files = scanned.files.length;
    tools.watcher.begun({ files, bytes: size, skipped: scanned.skipped });
    const manifest = (await this.dropped()) ?? (await this.sentAndComplete());
    if (manifest instanceof Problem) return manifest;
    return { state: "completed", size, files, sent: this.sent, skipped: scanned.skipped, manifest };
  }

  /** Takes away what an earlier push sent of files that are not in the folder any more: a run is its list and nothing else. */
  private async dropped(): Promise<Problem | undefined> {
    const { client, record } = this.tools;
    const { run } = this.wanted;
    const kept = new Set(this.scanned.files.map(({ path }) => path));
    for (const path of record.paths.filter((path) => !kept.has(path))) {
      const uploadId = record.uploadOf(path);
      // A file can be there whole from before, beside an upload that would have replaced it.
      const abandoned = uploadId === undefined ? undefined : await client.abandonUpload(run, path, uploadId);
      const problem = abandoned ?? (await client.removeFile(run, path));
      if (problem !== undefined) return problem;
      record.forget(path);
    }
    return undefined;
  }

  private async sentAndComplete(): Promise<Manifest | Problem> {
    const { wanted, tools } = this;
    const { client, record } = tools;
    const files = await this.filesSent();
    if (files instanceof Problem) return files;
    const manifest = await client.complete(wanted.run, { files, metadata: wanted.metadata });
    if (!(manifest instanceof Problem)) {
      await record.remove();
      return manifest;
    }
    const open = isCode(manifest, "upload_in_progress");
    if (!open && !isCode(manifest, "run_incomplete")) return manifest;
    if (open || !this.trusted) return strange(manifest, wanted.run);
    // The run was deleted, or belongs to another account now: what is remembered of it is worth nothing.
    this.trusted = false;
    record.forgetAll();
    tools.watcher.begun({ files: files.length, bytes: bytesOf(files), skipped: [] });
    return await this.sentAndComplete();
  }

  private async filesSent(): Promise<StoredFile[] | Problem> {
    const { wanted, tools, sent } = this;
    const queue = new Queue(wanted.parallel, this.stop);
    const stored: StoredFile[] = [];
    const done = (file: StoredFile, way: "sent" | "trusted") => {
      stored.push(file);
      tools.watcher.fileDone();
      if (way === "trusted") this.trusted = true;
      else {
        sent.files += 1;
        sent.bytes += file.size;
      }
    };
    for (const file of begunFirst(this.scanned.files, tools.record)) {
      queue.add(() => new FilePush(wanted.run, file, tools, queue, done).begin());
    }
    const problem = await queue.run();
    return problem ?? stored.sort((a, b) => (a.path < b.path ? -1 : 1));
  }
}

/** The run has what this push knows nothing of. */
function strange({ message, exit }: Problem, { robot, run }: RunName): Problem {
  return new Problem(
    `${message}; if another push of the run was left, go on with that one, or remove the run first: tendon runs delete ${robot} ${run}`,
    exit,
  );
}

/** A run may have few unfinished uploads at once: those of the last push come first. */
function begunFirst(files: readonly LocalFile[], record: PushRecord): readonly LocalFile[] {
  const [begun, others] = [[] as LocalFile[], [] as LocalFile[]];
  for (const file of files) (record.uploadOf(file.path) === undefined ? others : begun).push(file);
  return [...begun, ...others];
}

/** The run is complete already: it must be this folder. */
async function compared(
  manifest: Manifest,
  { run, metadata }: Push,
  { files, skipped }: FolderList,
  tools: Pick<Tools, "client" | "watcher">,
): Promise<PushReport | Problem> {
  tools.watcher.begun({ files: files.length, bytes: bytesOf(files), skipped });
  const differences = await differencesOf(manifest, { files, metadata }, tools);
  if (differences instanceof Problem) return differences;
  if (differences === undefined) {
    const sent = { files: 0, bytes: 0 };
    return { state: "already_there", size: manifest.size, files: manifest.files.length, sent, skipped, manifest };
  }
  return new Problem(
    `the run ${runText(run)} is complete already and is not this folder: they differ in ${differences}. Give this one another name with --run`,
  );
}
