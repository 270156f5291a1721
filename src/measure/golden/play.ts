/** Plays golden cases through the engine with their own noise, and opens what each stage computed. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { goldenFrame } from "../../bundle/golden.ts";
import { IMAGE_TOKENS, withImageTokens } from "../../bundle/inner-value.ts";
import type { Golden, Manifest } from "../../bundle/manifest.ts";
import type { Bundle } from "../../bundle/read.ts";
import { type Tensor, TensorFile } from "../../bundle/safetensors.ts";
import type { DeviceChoice } from "../../config/devices.ts";
import type { GpuOptions } from "../../config/gpu.ts";
import type { Engine } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";

/** One case: its number in the golden files, and both sides of each stage by name. */
export interface Played {
  readonly number: number;
  readonly given: Golden["cases"][number];
  /** A golden value, by its name without the number of the case. */
  readonly expected: (name: string) => Promise<Tensor | undefined>;
  /** What the engine computed: ports of prefill by their names, `normalised_state`, `velocity.S`, `actions` and `rows`. */
  readonly found: (name: string) => Promise<Tensor | undefined>;
}

export interface Where {
  readonly device: DeviceChoice;
  readonly gpu: GpuOptions;
}

/** Calls `look` for each of the cases, whose numbers are `numbers`, while the values are there. */
export async function playGolden<Seen>(
  engine: Engine,
  bundle: Bundle,
  { cases }: Golden,
  numbers: readonly number[],
  where: Where,
  look: (played: Played) => Promise<Seen>,
): Promise<Seen[] | Problem> {
  const values = await TensorFile.open(
    present(bundle.paths.get(bundle.manifest.parity.golden?.values ?? ""), "the golden values"),
  );
  if (values instanceof Problem) return values;
  const out = await mkdtemp(join(tmpdir(), "tendon-golden-"));
  try {
    const plan: { instruction: string; frames: string[]; state: number[]; noise: number[] }[] = [];
    for (const number of numbers) {
      const { instruction, state, frames } = present(cases[number], "a case");
      const noise = await values.tensor(`${number}.noise`);
      const paths = bundle.manifest.cameras.map((camera) =>
        present(bundle.paths.get(goldenFrame(bundle.manifest, frames[camera] ?? "")), camera),
      );
      plan.push({ instruction, state, frames: paths, noise: [...(noise?.values ?? [])] });
    }
    const width = numbers.map((number) => values.shape(`${number}.image_tokens.0`)?.[1]).find(Boolean);
    const shown = await showingImageTokens(bundle, width, out);
    const stages = { out, cases: plan, ...(shown && { prefill: shown.prefill }) };
    const model = await engine.load({
      bundle: { manifest: shown?.manifest ?? bundle.manifest, paths: bundle.paths },
      ...where,
      replicas: 1,
      threads: undefined,
      slots: 1,
      unproved: true,
      stages,
    });
    if (model instanceof Problem) return model;
    await model.unload();
    const seen: Seen[] = [];
    for (const [at, number] of numbers.entries()) {
      const sheet = await TensorFile.open(join(out, `${at}.safetensors`));
      if (sheet instanceof Problem) return sheet;
      const expected = (name: string) => values.tensor(`${number}.${name}`);
      seen.push(
        await look({ number, given: present(cases[number], "a case"), expected, found: (name) => sheet.tensor(name) }),
      );
    }
    return seen;
  } finally {
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
