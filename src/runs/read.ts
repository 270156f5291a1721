/** Reads of completed runs: the list, a manifest, a file, and what an account uses. */

import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { StoreDown } from "../store/store.ts";
import { type BlobBody, BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";
import { RUNS } from "./errors.ts";
import { fileNotFound, runNotFound, unavailable } from "./failures.ts";
import type { ListPlace } from "./store/reads.ts";
import type { CompletedRun, FileKey, RunKey, RunUsage, StoredFile } from "./store/records.ts";

interface Listing {
  readonly accountId: string;
  readonly robot: string | undefined;
  readonly after: ListPlace | undefined;
  readonly limit: number;
}

export interface Page {
  readonly runs: readonly CompletedRun[];
  /** Where the next page begins; undefined: this is the last one. */
  readonly next: ListPlace | undefined;
}

/** The newest first. */
export async function listRuns({ store }: Pick<RunDeps, "store">, listing: Listing): Promise<Page | Failure> {
  const { limit } = listing;
  const found = await store.runsListed({ ...listing, limit: limit + 1 });
  if (found instanceof StoreDown) return unavailable(found);
  const runs = found.slice(0, limit);
  const last = runs.at(-1);
  return { runs, next: found.length > limit && last ? { completedAt: last.completedAt, id: last.id } : undefined };
}

/** As JSON. */
export async function manifestOf({ store }: Pick<RunDeps, "store">, key: RunKey): Promise<string | Failure> {
  const manifest = await store.runManifest(key);
  if (manifest instanceof StoreDown) return unavailable(manifest);
  return manifest ?? runNotFound();
}

export async function fileOf({ store }: Pick<RunDeps, "store">, key: FileKey): Promise<StoredFile | Failure> {
  const file = await store.runFile(key);
  if (file instanceof StoreDown) return unavailable(file);
  if (file === "no_run") return runNotFound();
  return file ?? fileNotFound();
}

/** Bytes [from, to) of a file. */
export async function openFile(
  { blobs, store, log }: Pick<RunDeps, "blobs" | "store" | "log">,
  key: FileKey,
  { blobId }: StoredFile,
  from: number,
  to: number,
): Promise<BlobBody | Failure> {
  const body = await blobs.read(blobId, from, to);
  if (body instanceof BlobsDown) return unavailable(body);
  if (body !== "absent") return body;
  // The run was deleted since its record was read, or the bytes are lost.
  const again = await fileOf({ store }, key);
  if (again instanceof Failure) return again;
  log.error("the bytes of a file are missing", { blob: blobId });
  const message = "the bytes of this file cannot be read right now; retry with backoff";
  return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: 5 });
}

export async function usageOf(
  { store, clock, meter }: Pick<RunDeps, "store" | "clock" | "meter">,
  accountId: string,
): Promise<(RunUsage & { readonly month: number }) | Failure> {
  const month = monthOf(unixSeconds(clock));
  await meter.flush();
  const usage = await store.runUsage({ accountId, month });
  return usage instanceof StoreDown ? unavailable(usage) : { ...usage, month };
}
