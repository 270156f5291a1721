/** In what a folder differs from a completed run. */
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import type { RunsClient } from "../runs.ts";
import type { LocalFile } from "./folder.ts";
import { digestOf } from "./piece.ts";
import type { Manifest } from "./records.ts";
import type { Watcher } from "./watcher.ts";

const SHOWN_MAX = 10;

/** In words, for a terminal; undefined when they are the same. */
export async function differencesOf(
  manifest: Manifest,
  { files, metadata }: { readonly files: readonly LocalFile[]; readonly metadata: object | undefined },
  { client, watcher }: { readonly client: RunsClient; readonly watcher: Watcher },
): Promise<string | undefined | Problem> {
  const theirs = new Map(manifest.files.map((file) => [file.path, file]));
  const found: string[] = [];
  for (const file of files) {
    const difference = await differenceOf(file, theirs.get(file.path), client.signal);
    if (difference instanceof Problem) return difference;
    if (difference !== undefined) found.push(`'${printable(file.path)}' ${difference}`);
    theirs.delete(file.path);
    watcher.there(file.size);
    watcher.fileDone();
  }
  for (const path of theirs.keys()) found.push(`'${printable(path)}' is in the run alone`);
  if (metadata !== undefined && !Bun.deepEquals(metadata, manifest.metadata)) found.push("the metadata differ");
  if (found.length === 0) return undefined;
  const more = found.length > SHOWN_MAX ? `; and ${found.length - SHOWN_MAX} more` : "";
  return found.slice(0, SHOWN_MAX).join("; ") + more;
}

async function differenceOf(
  { file, size }: LocalFile,
  their: Manifest["files"][number] | undefined,
  signal: AbortSignal,
): Promise<string | undefined | Problem> {
  if (their === undefined) return "is in the folder alone";
  if (their.size !== size) return `has ${size} bytes here and ${their.size} there`;
  const sha256 = await digestOf({ file, start: 0, end: size }, signal);
  if (sha256 instanceof Problem) return sha256;
  return sha256 === their.sha256 ? undefined : "has other contents";
}
