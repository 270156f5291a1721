/** A small bundle with golden values that NumPy computed (test/vectors/golden.py), and copies of it that are wrong somewhere. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Options } from "../../src/bundle/build.ts";
import { exportId } from "../../src/bundle/manifest.ts";
import { decodeModel, encodeModel, type ModelProto } from "../../src/bundle/onnx-schema.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { bundleOf, emptyDir } from "./built.ts";
import type { FlowManifest } from "./flow-bundle.ts";

const GOLDEN_DIR = join(import.meta.dir, "../vectors/golden");

/** Changes the files of a bundle, by their paths in it, and its manifest, both in place. */
export type Spoil = (files: Map<string, Uint8Array>, manifest: FlowManifest) => unknown;

/** The folder of the bundle, spoiled. Its manifest lists the files as they are. */
export async function goldenBundle(
  spoil: Spoil = () => undefined,
  precision: Precision = "f32",
  options: Options = {},
): Promise<string> {
  const { manifest, paths } = await bundleOf(GOLDEN_DIR, precision, options);
  const files = new Map<string, Uint8Array>();
  for (const [path, place] of paths) files.set(path, await readFile(place));
  for (const name of await readdir(GOLDEN_DIR)) {
    if (/golden|jpg/.test(name)) files.set(`parity/${name}`, await readFile(join(GOLDEN_DIR, name)));
  }
  manifest.parity.golden = { cases: "parity/golden.json", values: "parity/golden.safetensors" };
  spoil(files, manifest);
  manifest.files = [...files].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
  manifest.export_id = exportId(manifest.files, manifest);
  const dir = join(await emptyDir(), "golden");
  await mkdir(join(dir, "parity"), { recursive: true });
  for (const [path, bytes] of files) await writeFile(join(dir, path), bytes);
  await writeFile(join(dir, "manifest.json"), JSON.stringify(manifest));
  return dir;
}

/** Changes a graph in place. */
export function graphOf(file: "prefill" | "denoise", change: (graph: ModelProto["graph"]) => void): Spoil {
  return (files) => {
    const model = decodeModel(files.get(`${file}.onnx`) ?? new Uint8Array());
    change(model.graph);
    files.set(`${file}.onnx`, encodeModel(model));
  };
}

/** Changes a JSON file in place. */
export function jsonOf<Content>(path: string, change: (content: Content) => unknown): Spoil {
  return (files) => {
    const content = JSON.parse(new TextDecoder().decode(files.get(path))) as Content;
    change(content);
    files.set(path, new TextEncoder().encode(JSON.stringify(content)));
  };
}
