/** Files and uploads that the tests of the store work with. */
import type { RunStore } from "../../../src/runs/store/runs.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { AT } from "../../store/rows.ts";

export const MONTH = 202_611;
export const KEY = { accountId: "a1", robot: "arm", run: "one" };
const BOUNDS = { runBytesMax: 1e9, runFilesMax: 2_000, runUploadsMax: 16, accountBytesMax: 1e9, accountRunsMax: 100 };
const digest = new Uint8Array(32).fill(1);

/** A file of 5 bytes. */
export function newFile(blobId: string, path = "a", changes: Partial<typeof KEY> = {}) {
  return { ...KEY, ...BOUNDS, runId: "run_1", blobId, path, size: 5, owner: "o", at: AT, ...changes };
}

export function commit(blobId: string) {
  return { accountId: KEY.accountId, blobId, sha256: digest, at: AT, storedAt: AT, month: MONTH };
}

/** An upload of two parts of 5 bytes; its blob is named after it. */
export function newUpload(uploadId: string, path = "a", changes: Partial<typeof KEY> = {}) {
  const facts = { size: 10, partSize: 5, sha256: undefined, expiresAt: AT + 1_000 };
  const { owner: _, ...file } = newFile(`blob_${uploadId}`, path, changes);
  return { ...file, ...facts, uploadId };
}

export function newPart(uploadId: string, part: number, tag = `${part}-x`) {
  return { accountId: KEY.accountId, uploadId, part, tag, size: 5, sha256: digest, month: MONTH };
}

export function joining(uploadId: string, attempt = `join_${uploadId}`) {
  const { accountId, accountBytesMax } = { ...KEY, ...BOUNDS };
  return { accountId, uploadId, owner: "o", attempt, accountBytesMax, at: AT };
}

export function joined(uploadId: string, attempt = `join_${uploadId}`) {
  return { accountId: KEY.accountId, uploadId, attempt, sha256: digest, at: AT, storedAt: AT, expiresAt: AT + 1_000 };
}

export function listed(...paths: readonly (readonly [path: string, size: number])[]) {
  const files = paths.map(([path, size]) => ({ path, size, contentType: "text/plain" }));
  return { ...KEY, files, metadata: "{}", at: AT, accountBytesMax: BOUNDS.accountBytesMax };
}

export async function stored(runs: RunStore, blobId: string, path = "a", changes: Partial<typeof KEY> = {}) {
  await told(runs.fileBegin(newFile(blobId, path, changes)));
  return await told(runs.fileCommit(commit(blobId)));
}

/** An upload whose parts have come, but are not put together. */
export async function sent(runs: RunStore, uploadId: string, path = "a") {
  await told(runs.uploadBegin(newUpload(uploadId, path)));
  await told(runs.uploadToken({ accountId: KEY.accountId, uploadId, token: "t" }));
  for (const part of [1, 2]) await told(runs.partCommit(newPart(uploadId, part)));
}

export async function uploaded(runs: RunStore, uploadId: string, path = "a") {
  await sent(runs, uploadId, path);
  await told(runs.joinBegin(joining(uploadId)));
  return await told(runs.joinCommit(joined(uploadId)));
}

export async function told<T>(outcome: Promise<T | StoreDown>): Promise<T> {
  const said = await outcome;
  if (said instanceof StoreDown) throw new Error(said.reason);
  return said;
}
