/** One file of a push: whole, or in parts that go beside those of other files. */
import { lstat } from "node:fs/promises";
import { LIMITS } from "../../limits.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import type { RunName } from "../../std/run-names.ts";
import { type Cargo, isCode, type RunsClient } from "../runs.ts";
import { pause } from "../waiting.ts";
import type { LocalFile } from "./folder.ts";
import { digestOf, type Piece } from "./piece.ts";
import type { PushRecord } from "./push-record.ts";
import type { Queue } from "./queue.ts";
import type { OpenUpload, StoredFile } from "./records.ts";
import type { Watcher } from "./watcher.ts";

/** What all files of a push share. */
export interface Tools {
  readonly client: RunsClient;
  readonly record: PushRecord;
  readonly watcher: Watcher;
}

/** How often a file is begun again whose upload the service lost, or found to be another file than was announced. */
const BEGINNINGS_MAX = 3;
/** Looks at a path that somebody else's request holds, and the pause between two. */
const LOOKS_MAX = 10;
const LOOK_MS = 2_000;

type Done = (file: StoredFile, way: "sent" | "trusted") => void;

export class FilePush {
  private sha256 = "";
  private beginnings = 0;
  /** Bytes that the watcher has heard of. */
  private told = 0;

  constructor(
    private readonly run: RunName,
    private readonly file: LocalFile,
    private readonly tools: Tools,
    private readonly queue: Queue,
    private readonly done: Done,
  ) {}

  async begin(): Promise<Problem | undefined> {
    const { file, tools } = this;
    const { record, client, watcher } = tools;
    const sha256 = record.digest(file) ?? (await digestOf(this.piece(0, file.size), client.signal));
    if (sha256 instanceof Problem) return sha256;
    this.sha256 = sha256;
    if (record.isStored(file, sha256)) {
      watcher.there(file.size);
      return this.stored("trusted");
    }
    return file.size > LIMITS.runFileBytesMax ? await this.inParts() : await this.whole();
  }

  private async whole(): Promise<Problem | undefined> {
    const { run, file, tools } = this;
    for (let look = 1; ; look += 1) {
      const taken = await tools.client.putFile(run, file.path, this.cargo(0, file.size, this.sha256));
      if (!(taken instanceof Problem)) return this.stored("sent");
      const changed = await this.blamed(taken);
      if (look >= LOOKS_MAX || changed !== taken) return changed;
      if (isCode(taken, "upload_in_progress")) {
        const problem = await this.cleared();
        if (problem !== undefined) return problem;
      } else {
        const stale = isCode(taken, "checksum_mismatch") && (await this.measuredAgain());
        if (stale !== true) return stale instanceof Problem ? stale : taken;
      }
    }
  }

  /** Whether the digest was another one: a file can change and keep its size and its time. */
  private async measuredAgain(): Promise<boolean | Problem> {
    const { file, tools } = this;
    const sha256 = await digestOf(this.piece(0, file.size), tools.client.signal);
    if (sha256 instanceof Problem) return sha256;
    const other = sha256 !== this.sha256;
    this.sha256 = sha256;
    return other;
  }

  /** The path is taken by an upload that fits no more, or by a request whose connection broke and which has not ended yet. */
  private async cleared(): Promise<Problem | undefined> {
    const { run, file, tools } = this;
    const open = await tools.client.openUploads(run, file.path);
    if (open instanceof Problem) return open;
    for (const { upload_id } of open.data) {
      const problem = await tools.client.abandonUpload(run, file.path, upload_id);
      if (problem !== undefined) return problem;
    }
    if (open.data.length === 0) await pause(tools.client.clock, LOOK_MS, tools.client.signal);
    return undefined;
  }

  private async inParts(): Promise<Problem | undefined> {
    this.beginnings += 1;
    const beginning = this.beginnings;
    const { file, tools, queue } = this;
    const upload = await this.opened();
    if (upload instanceof Problem) return upload;
    if (upload === "finished") {
      tools.watcher.there(file.size);
      return this.stored("trusted");
    }
    tools.record.begun(file, this.sha256, upload.upload_id);
    const missing = await this.missing(upload);
    if (missing instanceof Problem) return missing;
    if (missing === "other contents") {
      if (beginning > BEGINNINGS_MAX)
        return new Problem(`'${printable(file.path)}' is being uploaded by somebody else, too`);
      const problem = await tools.client.abandonUpload(this.run, file.path, upload.upload_id);
      tools.record.forget(file.path);
      return problem ?? (await this.inParts());
    }
    if (missing.length === 0) return await this.finish(upload);
    let left = missing.length;
    queue.addFirst(
      ...missing.map((part) => async () => {
        // The file was begun again: what is left of this beginning has no purpose.
        const problem = beginning === this.beginnings ? await this.part(upload, part) : undefined;
        if (beginning !== this.beginnings) return undefined;
        if (problem !== undefined) return await this.again(problem, "upload_not_found");
        left -= 1;
        return left === 0 ? await this.finish(upload) : undefined;
      }),
    );
    return undefined;
  }

  /** The upload that the record knows, or one that the service has open, or a new one. */
  private async opened(): Promise<OpenUpload | "finished" | Problem> {
    const { run, file, tools } = this;
    const { client, record } = tools;
    const { path, size } = file;
    const known = record.uploadOf(path);
    if (known !== undefined) {
      // The digest was announced when it was begun: of other contents nothing can be made of it.
      const upload = record.isBegun(file, this.sha256) ? await this.resumed(known) : undefined;
      if (upload !== undefined) return upload;
      const problem = await client.abandonUpload(run, path, known);
      if (problem !== undefined) return problem;
      record.forget(path);
    }
    for (let look = 1; ; look += 1) {
      const started = await client.startUpload(run, path, { size, sha256: this.sha256 });
      if (!(started instanceof Problem)) return { ...started, size, received: [] };
      if (look >= LOOKS_MAX || !isCode(started, "upload_in_progress")) return started;
      const found = await this.found();
      if (found !== undefined) return found;
    }
  }

  /** Undefined when there is nothing to go on with. */
  private async resumed(id: string): Promise<OpenUpload | "finished" | Problem | undefined> {
    const { run, file, tools } = this;
    const upload = await tools.client.upload(run, file.path, id);
    const open = upload instanceof Problem ? undefined : upload;
    if (open === undefined && !isCode(upload, "upload_not_found", "run_not_found")) return upload;
    if (open !== undefined && open.received.length > 0) return open;
    // Nothing has come; or it was finished, and the contract does not say that it lists its parts after that, as this service
    // does for 7 days: a repeated finish tells.
    const finished = await tools.client.finishUpload(run, file.path, id);
    if (this.isWhole(finished)) return "finished";
    if (isCode(finished, "run_incomplete")) return open;
    const gone = isCode(finished, "upload_not_found", "run_not_found", "checksum_mismatch");
    return gone || !(finished instanceof Problem) ? undefined : finished;
  }

  /** An upload of the path that an earlier push began and whose id is lost. One of another size is in the way. */
  private async found(): Promise<OpenUpload | Problem | undefined> {
    const { run, file, tools } = this;
    const open = await tools.client.openUploads(run, file.path);
    if (open instanceof Problem) return open;
    const fitting = open.data.find(({ size }) => size === file.size);
    if (fitting === undefined) return await this.cleared();
    const upload = await tools.client.upload(run, file.path, fitting.upload_id);
    return isCode(upload, "upload_not_found") ? undefined : upload;
  }

  /** Parts that the service does not have. Where one that it has is not ours, its upload is of another state of the file. */
  private async missing(upload: OpenUpload): Promise<number[] | "other contents" | Problem> {
    const { file, tools } = this;
    const received = new Map(upload.received.map(({ part, sha256 }) => [part, sha256]));
    const missing: number[] = [];
    let there = 0;
    for (let part = 1; (part - 1) * upload.part_size < file.size; part += 1) {
      const [start, end] = this.span(upload, part);
      const theirs = received.get(part);
      if (theirs === undefined) missing.push(part);
      else {
        const ours = await digestOf(this.piece(start, end), tools.client.signal);
        if (ours instanceof Problem) return ours;
        if (theirs !== ours) return "other contents";
        there += end - start;
      }
    }
    this.told += there;
    tools.watcher.there(there);
    return missing;
  }

  private async part(upload: OpenUpload, part: number): Promise<Problem | undefined> {
    const { run, file, tools } = this;
    const [start, end] = this.span(upload, part);
    const sha256 = await digestOf(this.piece(start, end), tools.client.signal);
    if (sha256 instanceof Problem) return sha256;
    const at = { id: upload.upload_id, part };
    const taken = await tools.client.putPart(run, file.path, at, this.cargo(start, end, sha256));
    return taken instanceof Problem ? taken : undefined;
  }

  private async finish(upload: OpenUpload): Promise<Problem | undefined> {
    const { run, file, tools } = this;
    const finished = await tools.client.finishUpload(run, file.path, upload.upload_id);
    if (finished instanceof Problem) {
      return await this.again(finished, "upload_not_found", "run_incomplete", "checksum_mismatch");
    }
    if (this.isWhole(finished)) return this.stored("sent");
    return new Problem(`the service put '${printable(file.path)}' together otherwise than it was sent; push again`);
  }

  /** Begins the file again where the service lost the upload, lacks parts of it, or found another file than was announced. */
  private async again(problem: Problem, ...codes: readonly string[]): Promise<Problem | undefined> {
    const { told, tools } = this;
    const changed = await this.blamed(problem);
    if (changed !== problem || this.beginnings >= BEGINNINGS_MAX || !isCode(problem, ...codes)) return changed;
    if (isCode(problem, "checksum_mismatch")) {
      const other = await this.measuredAgain();
      if (other instanceof Problem) return other;
    }
    this.told = 0;
    tools.watcher.moved(-told);
    return await this.inParts();
  }

  /** Blames the file, where it is not what it was when it was measured. */
  private async blamed(problem: Problem): Promise<Problem> {
    const { path, file, size, mtimeMs } = this.file;
    const now = await lstat(file).catch(() => undefined);
    if (now?.size === size && now.mtimeMs === mtimeMs) return problem;
    return new Problem(`'${printable(path)}' changed while it was pushed; push again when nothing writes to it`);
  }

  private isWhole(file: StoredFile | Problem): boolean {
    return !(file instanceof Problem) && file.size === this.file.size && file.sha256 === this.sha256;
  }

  private stored(way: "sent" | "trusted"): undefined {
    const { file, sha256, tools } = this;
    tools.record.stored(file, sha256);
    this.done({ path: file.path, size: file.size, sha256 }, way);
  }

  private span({ part_size }: OpenUpload, part: number): readonly [start: number, end: number] {
    return [(part - 1) * part_size, Math.min(part * part_size, this.file.size)];
  }

  private piece(start: number, end: number): Piece {
    return { file: this.file.file, start, end };
  }

  private cargo(start: number, end: number, sha256: string): Cargo {
    const moved = (bytes: number) => {
      this.told += bytes;
      this.tools.watcher.moved(bytes);
    };
    return { piece: this.piece(start, end), sha256, moved };
  }
}
