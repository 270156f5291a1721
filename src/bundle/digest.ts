/** Digests of a bundle: of each file, and the export id. */
import { createHash } from "node:crypto";
import type { Manifest } from "./manifest.ts";

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * `export_id`: SHA-256 over one line `<sha256>  <path>\n` for each graph and weight file, the tokenizer and the norm
 * statistics, in path order.
 *
 * Without the parity vectors: they depend on the noise, which is keyed by this id, so the id must not depend on them.
 */
export function exportId(
  files: Manifest["files"],
  { graphs, weight_files = [], tokenizer, norm }: Pick<Manifest, "graphs" | "weight_files" | "tokenizer" | "norm">,
): string {
  const counted = new Set([...Object.values(graphs).map(({ file }) => file), ...weight_files, tokenizer, norm]);
  const lines = files
    .filter((file) => counted.has(file.path))
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .map((file) => `${file.sha256}  ${file.path}\n`);
  return sha256(lines.join(""));
}
