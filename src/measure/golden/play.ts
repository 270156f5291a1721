/** Plays golden cases through the engine with their own noise, and opens what each stage computed. */
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { goldenFrame } from "../../bundle/golden.ts";
import { TensorFile } from "../../bundle/import/safetensors.ts";
import { type InnerValue, withInnerValues } from "../../bundle/inner-value.ts";
import type { Golden, Manifest } from "../../bundle/manifest.ts";
import type { Bundle } from "../../bundle/read.ts";
import type { DeviceChoice } from "../../config/devices.ts";
import type { GpuOptions } from "../../config/gpu.ts";
import type { Engine } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { inTemporaryFolder } from "../../std/temporary-folder.ts";
import { type Tensor, tensorOf } from "./difference.ts";

/** One case: its number in the golden files, and both sides of each stage by name. */
export interface Played {
  readonly number: number;
  /** Those of its golden values, without the number. */
  readonly names: readonly string[];
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
  look: (played: Played) => Seen | Problem,
): Promise<Seen[] | Problem> {
  const { manifest, paths } = bundle;
  const values = TensorFile.open(present(paths.get(manifest.parity.golden?.values ?? ""), "the golden values"));
  if (values instanceof Problem) return values;
  return await inTemporaryFolder(join(tmpdir(), "tendon-golden-"), async (out) => {
    const plan = numbers.map((number) => {
      const { instruction, state, frames } = present(cases[number], "a case");
      const frame = (camera: string) => present(paths.get(goldenFrame(manifest, frames[camera] ?? "")), camera);
      const noise = [...(tensorOf(values, `${number}.noise`)?.values ?? [])];
      return { instruction, state, frames: manifest.cameras.map(frame), noise };
    });
    const width = [...values.tensors.values()].find(({ name }) => /^\d+\.image_tokens\./.test(name))?.shape[1];
    const shown = await showingInside(bundle, width, out);
    const model = await engine.load({
      bundle: { manifest: shown.manifest, paths },
      ...where,
      ...{ replicas: 1, threads: undefined, slots: 1, unproved: true },
      stages: { out, cases: plan, prefill: shown.prefill },
    });
    if (model instanceof Problem) return model;
    await model.unload();
    const seen: Seen[] = [];
    for (const [at, number] of numbers.entries()) {
      const sheet = TensorFile.open(join(out, `${at}.safetensors`));
      if (sheet instanceof Problem) return sheet;
      const own = [...values.tensors.keys()].filter((name) => name.startsWith(`${number}.`));
      const names = own.map((name) => name.slice(`${number}.`.length));
      const expected = (name: string) => tensorOf(values, `${number}.${name}`);
      const found = (name: string) => tensorOf(sheet, name);
      const one = sheet.tensors.size > 0 ? look({ number, names, expected, found }) : undefined;
      sheet.close();
      if (one instanceof Problem) return one;
      if (one !== undefined) seen.push(one);
    }
    return seen;
  }).finally(() => values.close());
}

/** Pictures after a norm that the graph has for each view, image tokens, and the beginnings of the names of a layer's keys and values. */
export const INNER = { pictures: "normal_pictures", tokens: "image_tokens", k: "inner_k_", v: "inner_v_" } as const;

/** The manifest and the file, in `folder`, of a prefill graph that gives these too. `width`: that of the image tokens, if they are wanted. */
async function showingInside({ manifest, paths }: Bundle, width: number | undefined, folder: string) {
  const { file } = manifest.graphs.prefill;
  const views = viewsOf(manifest).length;
  const { width: columns, height, tokens } = manifest.image;
  const dtype = manifest.compute ?? "f32";
  const wanted: InnerValue[] = [
    { scope: "pictures", name: INNER.pictures, dtype: "f32", shape: ["batch", views, 3, height, columns] },
  ];
  if (width !== undefined) {
    wanted.push({ scope: "vision", name: INNER.tokens, dtype, shape: ["batch", views * tokens, width] });
  }
  // A block that reads projections has them in its ports, so that the keys and values of the layer are inside.
  for (const { name, shape } of manifest.graphs.prefill.outputs) {
    const [, part, layer] = /^past_([kv])_(\d+)$/.exec(name) ?? [];
    const scope = `expert.blocks.${layer}.context`;
    if (part === "k") wanted.push({ scope, read: 0, name: `${INNER.k}${layer}`, dtype, shape });
    if (part === "v") wanted.push({ scope, read: 1, name: `${INNER.v}${layer}`, dtype, shape });
  }
  const { graph, values } = withInnerValues(await readFile(present(paths.get(file), file)), wanted);
  const prefill = join(folder, "prefill.onnx");
  await writeFile(prefill, graph);
  const shown = structuredClone(manifest);
  // Only the native library knows the role: no bundle has such an output.
  const ports = values.map(({ name, dtype, shape }) => ({ name, role: "inner", dtype, shape }));
  shown.graphs.prefill.outputs.push(...(ports as unknown as typeof shown.graphs.prefill.outputs));
  return { manifest: shown, prefill };
}

/** The policy's views in its order, which is that of the graph's pictures. */
export function viewsOf({ graphs, cameras }: Manifest): string[] {
  const pictures = graphs.prefill.inputs.filter(({ role }) => role === "images");
  return pictures.flatMap(({ cameras: views = cameras }) => views);
}
