/** In what a folder differs from a completed run. */
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import type { RunsClient } from "../runs.ts";
import type { LocalFile } from "./folder.ts";
import { digestOf } from "./piece.ts";
import type { Manifest, StoredFile } from "./records.ts";
import type { Watcher } from "./watcher.ts";

const SHOWN_MAX = 10;

/** In words, for a terminal; undefined when they are the same. */
export async function differencesOf(
  manifest: Manifest,
  { files, metadata }: { readonly files: readonly LocalFile[]; readonly metadata: object | undefined },
  { client, watcher }: { readonly client: RunsClient; readonly watcher: Watcher },
): Promise<string | undefined | Problem> {
  const contents = ({ size, sha256 }: Omit<StoredFile, "path">) => `${size} ${sha256}`;
  const theirs = new Map(manifest.files.map((file) => [file.path, contents(file)]));
  const differing: string[] = [];
  for (const { path, file, size } of files) {
    const sha256 = await digestOf({ file, start: 0, end: size }, client.signal);
    if (sha256 instanceof Problem) return sha256;
    if (theirs.get(path) !== contents({ size, sha256 })) differing.push(path);
    theirs.delete(path);
    watcher.there(size);
    watcher.fileDone();
  }
  differing.push(...theirs.keys());
  const found = differing.map((path) => `'${printable(path)}'`);
  if (metadata !== undefined && !Bun.deepEquals(metadata, manifest.metadata)) found.push("the metadata");
  if (found.length === 0) return undefined;
  const more = found.length > SHOWN_MAX ? ` and ${found.length - SHOWN_MAX} more` : "";
  return found.slice(0, SHOWN_MAX).join(", ") + more;
}
