/**
 * What the service has acknowledged of a push, in a small file, so that a push that was cut goes on where it was. Losing the file
 * costs time alone: the service is asked for its open uploads, and what it has whole is sent again.
 */
import { realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { readText, writePrivate } from "../../std/file.ts";
import { sha256 } from "../../std/file-digest.ts";
import { parseJson } from "../../std/json.ts";
import type { RunName } from "../../std/run-names.ts";
import type { LocalFile } from "./folder.ts";

const Entry = Type.Object({
  size: Type.Number(),
  mtime_ms: Type.Number(),
  sha256: Type.String(),
  /** The service has the whole file. */
  stored: Type.Boolean(),
  /** The id of an upload that has begun. */
  upload_id: Type.Optional(Type.String()),
});
type Entry = Static<typeof Entry>;

const Saved = Type.Object({ version: Type.Literal(1), files: Type.Record(Type.String(), Entry) });

interface Of {
  readonly url: string;
  readonly run: RunName;
  readonly folder: string;
}

export class PushRecord {
  private files = new Map<string, Entry>();
  private dirty = false;
  private writing: Promise<void> | undefined;

  private constructor(private readonly file: string) {}

  /** The record of this folder, run and service in `recordsDir`; an empty one when there is none that can be read. */
  static async open(recordsDir: string, { url, run, folder }: Of): Promise<PushRecord> {
    const key = JSON.stringify([url, run.robot, run.run, await realpath(folder).catch(() => folder)]);
    const record = new PushRecord(join(recordsDir, `${sha256(key).slice(0, 32)}.json`));
    // A record that cannot be read is as good as none.
    const saved = parseJson((await readText(record.file).catch(() => undefined)) ?? "");
    if (Value.Check(Saved, saved)) record.files = new Map(Object.entries(saved.files));
    return record;
  }

  get paths(): string[] {
    return [...this.files.keys()];
  }

  /** The digest of a file that has not been written to since it was taken. */
  digest({ path, size, mtimeMs }: LocalFile): string | undefined {
    const entry = this.files.get(path);
    return entry?.size === size && entry.mtime_ms === mtimeMs ? entry.sha256 : undefined;
  }

  isStored(file: LocalFile, sha256: string): boolean {
    return this.isBegun(file, sha256) && this.files.get(file.path)?.stored === true;
  }

  uploadOf(path: string): string | undefined {
    return this.files.get(path)?.upload_id;
  }

  /** Whether its upload was begun for these contents. */
  isBegun({ path, size }: LocalFile, sha256: string): boolean {
    const entry = this.files.get(path);
    return entry?.size === size && entry.sha256 === sha256;
  }

  begun({ path, size, mtimeMs }: LocalFile, sha256: string, uploadId: string): void {
    this.set(path, { size, mtime_ms: mtimeMs, sha256, stored: false, upload_id: uploadId });
  }

  stored({ path, size, mtimeMs }: LocalFile, sha256: string): void {
    this.set(path, { size, mtime_ms: mtimeMs, sha256, stored: true });
  }

  forget(path: string): void {
    if (this.files.delete(path)) this.save();
  }

  forgetAll(): void {
    this.files.clear();
    this.save();
  }

  /** Waits until all of it is on the disk. */
  async settled(): Promise<void> {
    while (this.writing !== undefined) await this.writing;
  }

  /** The run is complete. */
  async remove(): Promise<void> {
    await this.settled();
    await rm(this.file, { force: true }).catch(() => {});
  }

  private set(path: string, entry: Entry): void {
    this.files.set(path, entry);
    this.save();
  }

  /** One write at a time; what comes meanwhile goes into the next one together. */
  private save(): void {
    this.dirty = true;
    this.writing ??= this.write().finally(() => {
      this.writing = undefined;
    });
  }

  private async write(): Promise<void> {
    while (this.dirty) {
      this.dirty = false;
      const saved = { version: 1, files: Object.fromEntries(this.files) };
      // A disk that takes no record must not stop a push.
      await writePrivate(this.file, JSON.stringify(saved)).catch(() => {});
    }
  }
}
