/** `complete`: from then on the run is listed and readable, and its files do not change. */

import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { StoreDown } from "../store/store.ts";
import { contentType } from "./content-type.ts";
import type { RunDeps } from "./deps.ts";
import { RUNS } from "./errors.ts";
import { completed, unavailable } from "./failures.ts";
import type { Incomplete, ListedFile, RunKey } from "./store/records.ts";

interface Complete extends RunKey {
  /** Paths are unique. */
  readonly files: readonly Omit<ListedFile, "contentType">[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The manifest, as JSON. */
export async function completeRun(
  { store, clock }: RunDeps,
  { files, metadata, ...key }: Complete,
): Promise<string | Failure> {
  const outcome = await store.runComplete({
    ...key,
    files: files.map((file) => ({ ...file, contentType: contentType(file.path) })),
    metadata: JSON.stringify(metadata),
    at: unixSeconds(clock),
  });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  if (outcome === "run_completed") return completed();
  if ("manifest" in outcome) return outcome.manifest;
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
