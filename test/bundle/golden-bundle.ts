/** A small bundle with golden values that NumPy computed (test/vectors/golden.py). */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Options } from "../../src/bundle/build.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import { bundleOf } from "./built.ts";
import { type Spoil, spoiledCopy } from "./spoiled-bundle.ts";

const GOLDEN_DIR = join(import.meta.dir, "../vectors/golden");

/** The folder of the bundle, spoiled. */
export async function goldenBundle(
  spoil: Spoil = () => undefined,
  precision: Precision = "f32",
  options: Options = {},
): Promise<string> {
  const { manifest, paths } = await bundleOf(GOLDEN_DIR, precision, options);
  const names = (await readdir(GOLDEN_DIR)).filter((name) => /golden|jpg/.test(name));
  const golden = names.map((name) => [`parity/${name}`, join(GOLDEN_DIR, name)] as const);
  manifest.parity.golden = { cases: "parity/golden.json", values: "parity/golden.safetensors" };
  return await spoiledCopy({ manifest, paths: new Map([...paths, ...golden]) }, spoil);
}
