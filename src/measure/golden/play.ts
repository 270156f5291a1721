/** Plays golden cases through the engine with their own noise, and opens what each stage computed. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { goldenFrame } from "../../bundle/golden.ts";
import { TensorFile } from "../../bundle/import/safetensors.ts";
import { IMAGE_TOKENS, withImageTokens } from "../../bundle/inner-value.ts";
import type { Golden, Manifest } from "../../bundle/manifest.ts";
import type { Bundle } from "../../bundle/read.ts";
import type { DeviceChoice } from "../../config/devices.ts";
import type { GpuOptions } from "../../config/gpu.ts";
import type { Engine } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { type Tensor, tensorOf } from "./difference.ts";

/** One case: its number in the golden files, and both sides of each stage by name. */
export interface Played {
  readonly number: number;
  /** A golden value, by its name without the number of the case. */
  readonly expected: (name: string) => Tensor | undefined;
  /** What the engine computed: ports of prefill by their names, `normalised_state`, `velocity.S`, `actions` and `rows`. */
  readonly found: (name: string) => Tensor | undefined;
}

export interface Where {
  readonly device: DeviceChoice;
  readonly gpu: GpuOptions;
}

/** Calls `look` for each of the cases, whose numbers are `numbers`, while the values are there; not for one whose instruction is too long. */
export async function playGolden<Seen>(
  engine: Engine,
  bundle: Bundle,
  { cases }: Golden,
  numbers: readonly number[],
  where: Where,
  look: (played: Played) => Seen,
): Promise<Seen[] | Problem> {
  const { manifest, paths } = bundle;
  const values = TensorFile.open(present(paths.get(manifest.parity.golden?.values ?? ""), "the golden values"));
  if (values instanceof Problem) return values;
  const out = await mkdtemp(join(tmpdir(), "tendon-golden-"));
  try {
    const plan = numbers.map((number) => {
      const { instruction, state, frames } = present(cases[number], "a case");
      const frame = (camera: string) => present(paths.get(goldenFrame(manifest, frames[camera] ?? "")), camera);
      const noise = [...(tensorOf(values, `${number}.noise`)?.values ?? [])];
      return { instruction, state, frames: manifest.cameras.map(frame), noise };
    });
    const width = numbers.map((number) => values.tensors.get(`${number}.image_tokens.0`)?.shape[1]).find(Boolean);
    const shown = await showingImageTokens(bundle, width, out);
    const model = await engine.load({
      bundle: { manifest: shown?.manifest ?? manifest, paths },
      ...where,
      ...{ replicas: 1, threads: undefined, slots: 1, unproved: true },
      stages: { out, cases: plan, ...(shown && { prefill: shown.prefill }) },
    });
    if (model instanceof Problem) return model;
    await model.unload();
    const seen: Seen[] = [];
    for (const [at, number] of numbers.entries()) {
      const sheet = TensorFile.open(join(out, `${at}.safetensors`));
      if (sheet instanceof Problem) return sheet;
      const expected = (name: string) => tensorOf(values, `${number}.${name}`);
      const found = (name: string) => tensorOf(sheet, name);
      if (sheet.tensors.size > 0) seen.push(look({ number, expected, found }));
      sheet.close();
    }
    return seen;
  } finally {
    values.close();
    await rm(out, { recursive: true });
  }
}

/** The manifest and the file, in `folder`, of a prefill graph that gives its image tokens too. */
async function showingImageTokens({ manifest, paths }: Bundle, width: number | undefined, folder: string) {
  if (width === undefined) return undefined;
  const { file } = manifest.graphs.prefill;
  const tokens = viewsOf(manifest).length * manifest.image.tokens;
  const dtype = manifest.compute ?? "f32";
  const graph = withImageTokens(await readFile(present(paths.get(file), file)), dtype, [tokens, width]);
  if (graph === undefined) return undefined;
  const prefill = join(folder, "prefill.onnx");
  await writeFile(prefill, graph);
  const shown = structuredClone(manifest);
  // Only the native library knows the role: no bundle has such an output.
  const port = { name: IMAGE_TOKENS, role: "inner", dtype, shape: ["batch", tokens, width] } as const;
  shown.graphs.prefill.outputs.push(port as unknown as (typeof shown.graphs.prefill.outputs)[number]);
  return { manifest: shown, prefill };
}

/** The policy's views in its order, which is that of the graph's pictures. */
export function viewsOf({ graphs, cameras }: Manifest): string[] {
  const pictures = graphs.prefill.inputs.filter(({ role }) => role === "images");
  return pictures.flatMap(({ cameras: views = cameras }) => views);
}
