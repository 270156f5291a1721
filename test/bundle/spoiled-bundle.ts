/** Copies of bundles that are wrong somewhere. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { exportId, type NormStats } from "../../src/bundle/manifest.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { emptyDir } from "./built.ts";
import type { FlowManifest } from "./flow-bundle.ts";

/** Changes the files of a bundle, by their paths in it, and its manifest, both in place. */
export type Spoil = (files: Map<string, Uint8Array>, manifest: FlowManifest) => unknown;

/** The folder of a copy, spoiled. Its manifest lists the files as they are. */
export async function spoiledCopy({ manifest: given, paths }: Bundle, spoil: Spoil): Promise<string> {
  const manifest = structuredClone(given) as FlowManifest;
  const files = new Map<string, Uint8Array>();
  for (const [path, place] of paths) files.set(path, await readFile(place));
  spoil(files, manifest);
  manifest.files = [...files].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
  manifest.export_id = exportId(manifest.files, manifest);
  const dir = join(await emptyDir(), "spoiled");
  for (const [path, bytes] of files) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), bytes);
  }
  await writeFile(join(dir, "manifest.json"), JSON.stringify(manifest));
  return dir;
}

/** Changes a JSON file in place. */
export function jsonOf<Content>(path: string, change: (content: Content) => unknown): Spoil {
  return (files) => {
    const content = JSON.parse(new TextDecoder().decode(files.get(path))) as Content;
    change(content);
    files.set(path, new TextEncoder().encode(JSON.stringify(content)));
  };
}

export const norm = (change: (stats: NormStats) => void) => jsonOf<NormStats>("norm.json", change);

/** Changes the manifest in place. */
export function facts(change: (manifest: FlowManifest) => unknown): Spoil {
  return (_, manifest) => change(manifest);
}

/** Views of the first two cameras have each other's pictures. */
export const swappedCameras = facts(({ graphs, cameras: [first = "", second = ""] }) => {
  const other = (name: string) => (name === first ? second : name === second ? first : name);
  for (const port of graphs.prefill.inputs) port.cameras &&= port.cameras.map(other);
});
type Vocabulary = Record<string, number> | [text: string, score: number][];

/** Two tokens have each other's ids. */
export const otherTokenizer = jsonOf<{ model: { vocab: Vocabulary } }>("tokenizer.json", ({ model: { vocab } }) => {
  if (Array.isArray(vocab)) {
    const [e, o] = ["e", "o"].map((letter) => vocab.findIndex(([text]) => text === letter)) as [number, number];
    [vocab[e], vocab[o]] = [vocab[o] ?? ["", 0], vocab[e] ?? ["", 0]];
  } else [vocab.e, vocab.o] = [vocab.o ?? 0, vocab.e ?? 0];
});
