/** Stored runs and their files: listed, read, completed and deleted. */
import { LIMITS } from "../limits.ts";
import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { type BlobBody, BlobsDown } from "./blob/blobs.ts";
import { completed, fileNotFound, overQuota, RUNS, runGone, runNotFound, unavailable } from "./errors.ts";
import type { RunDeps } from "./gate.ts";
import { contentType } from "./media-type.ts";
import type { ListCursor, Listing } from "./store/reads.ts";
import type { CompletedRun, FileKey, Incomplete, ListedFile, RunKey, RunUsage, StoredFile } from "./store/records.ts";

export interface Page {
  readonly runs: readonly CompletedRun[];
  /** The run after which the next page begins; undefined on the last page. */
  readonly next: ListCursor | undefined;
}

/** A page of completed runs, the newest first. */
export async function listRuns({ store }: RunDeps, listing: Listing): Promise<Page | Failure> {
  const { limit } = listing;
  const found = await store.runsListed({ ...listing, limit: limit + 1 });
  if (found instanceof StoreDown) return unavailable(found);
  const runs = found.slice(0, limit);
  return { runs, next: found.length > limit ? runs.at(-1) : undefined };
}

/** The manifest of a completed run, as JSON. */
export async function manifestOf({ store }: RunDeps, key: RunKey): Promise<string | Failure> {
  const manifest = await store.runManifest(key);
  if (manifest instanceof StoreDown) return unavailable(manifest);
  return manifest ?? runNotFound();
}

export async function fileOf({ store }: RunDeps, key: FileKey): Promise<StoredFile | Failure> {
  const file = await store.runFile(key);
  if (file instanceof StoreDown) return unavailable(file);
  if (file === "no_run") return runNotFound();
  return file ?? fileNotFound();
}

/** Bytes [from, to) of a file. */
export async function openFile(
  deps: RunDeps,
  key: FileKey,
  { blobId }: StoredFile,
  from: number,
  to: number,
): Promise<BlobBody | Failure> {
  const body = await deps.blobs.read(blobId, from, to);
  if (body instanceof BlobsDown) return unavailable(body);
  if (body !== "absent") return body;
  // The run may have been deleted since its record was read.
  const again = await fileOf(deps, key);
  if (again instanceof Failure) return again;
  deps.log.error("the bytes of a file are missing", { blob: blobId });
  const message = "the bytes of this file cannot be read right now; retry with backoff";
  return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: 5 });
}

interface MonthUsage extends RunUsage {
  readonly month: number;
}

export async function usageOf({ store, clock, meter }: RunDeps, accountId: string): Promise<MonthUsage | Failure> {
  const month = monthOf(unixSeconds(clock));
  await meter.flush();
  const usage = await store.runUsage({ accountId, month });
  return usage instanceof StoreDown ? unavailable(usage) : { ...usage, month };
}

/** The list of a run's files as its client sends it. Paths are unique. */
export interface Completing extends RunKey {
  readonly files: readonly Omit<ListedFile, "contentType">[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Makes the run listed and readable; its files do not change any more. The result is the manifest, as JSON. */
export async function completeRun(deps: RunDeps, completing: Completing): Promise<string | Failure> {
  const { store, clock, blobs, bounds } = deps;
  const { files, metadata, ...key } = completing;
  const down = await blobs.hasRoom(LIMITS.runJsonBytesMax);
  const outcome = await store.runComplete({
    ...key,
    files: files.map((file) => ({ ...file, contentType: contentType(file.path) })),
    metadata: JSON.stringify(metadata),
    at: unixSeconds(clock),
    accountBytesMax: bounds.accountBytesMax,
    down,
  });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  if (outcome === "run_completed") return completed();
  if (outcome === "quota") return overQuota(bounds);
  if ("manifest" in outcome) return outcome.manifest;
  if ("down" in outcome) return unavailable(outcome.down);
  if ("incomplete" in outcome) return new Failure(RUNS.run_incomplete, incomplete(outcome.incomplete));
  return new Failure(
    RUNS.upload_in_progress,
    `the multipart upload of ${JSON.stringify(outcome.unfinished)} is unfinished; finish it or abort it, then complete the run`,
  );
}

function incomplete({ why, path, stored }: Incomplete): string {
  const name = JSON.stringify(path);
  switch (why) {
    case "missing":
      return `${name} is listed, but is not stored; upload it, or leave it out of the list`;
    case "size":
      return `${name} is stored with ${stored} bytes, not with those of the list; upload it again, or correct the list`;
    case "digest":
      return `${name} is stored with the SHA-256 ${stored}, not with that of the list; upload it again, or correct the list`;
    case "unlisted":
      return `${name} is stored, but is not listed; add it to the list, or delete it`;
  }
}

/** Deletes the record of a file; the sweep removes its bytes. */
export async function removeFile({ store, clock }: RunDeps, key: FileKey): Promise<undefined | Failure> {
  const outcome = await store.fileDelete({ ...key, cause: makeId("del_", clock), at: seenSeconds(clock) });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  if (outcome === "run_not_found") return runGone();
  if (outcome === "run_completed") return completed();
  return outcome === "file_not_found" ? fileNotFound() : undefined;
}

/** Deletes a run in any state, with its files and uploads. */
export async function removeRun({ store, clock }: RunDeps, key: RunKey): Promise<undefined | Failure> {
  const outcome = await store.runDelete({ ...key, cause: makeId("del_", clock), at: seenSeconds(clock) });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  return outcome === "run_not_found" ? runGone() : undefined;
}
