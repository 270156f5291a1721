/** Folders of new models: a family's facts with other cameras, sizes, rows and steps. A folder, no code. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import type { NormStats, Parity } from "../../src/bundle/manifest.ts";
import { bundleOf, emptyDir, MODEL_DIR } from "./built.ts";
import type { FlowBundle } from "./flow-bundle.ts";

/** Both are small: a chunk takes a millisecond or two. */
export const SEVENTH = { "flow-vla": "lab/seventh:yam", "world-action": "lab/eighth:yam" } as const;

/** What a variant of such a model changes, in place. */
export type Change = (model: Writable<ModelFile>, norm: Writable<NormStats>) => void;

/** The bundle of a new model of the family. Nobody computed its rows, so any finite ones pass as its parity. */
export async function seventhBundle(family: keyof typeof SEVENTH, change?: Change): Promise<FlowBundle> {
  const { manifest, paths } = await bundleOf(await seventhModel(family, change));
  return { paths, manifest: { ...manifest, parity: { ...manifest.parity, tolerance: 1e3 } } };
}

/** The folder of a new model of the family. */
async function seventhModel(family: keyof typeof SEVENTH, change?: Change): Promise<string> {
  const like = join(MODEL_DIR, "..", family === "flow-vla" ? "molmoact2-yam" : "dreamzero-astra-yam");
  const dir = join(await emptyDir(), "seventh");
  await mkdir(dir, { recursive: true });
  await cp(like, dir, { recursive: true });
  const model = JSON.parse(await readFile(join(dir, "model.json"), "utf8")) as Writable<ModelFile>;
  model.id = SEVENTH[family];
  model.title = "A model that came later";
  model.cameras = ["wrist", "above"];
  model.action.rows = 8;
  model.action.hz = 20;
  model.flow.steps = 2;
  Object.assign(model, family === "flow-vla" ? flowVla(model) : worldAction(model));
  const norm = JSON.parse(await readFile(join(dir, "norm.json"), "utf8")) as Writable<NormStats>;
  change?.(model, norm);
  await writeFile(join(dir, "norm.json"), JSON.stringify(norm));
  await writeFile(join(dir, "model.json"), JSON.stringify(model));
  await writeFile(join(dir, "parity/chunk.json"), JSON.stringify(await withoutRows(dir, model)));
  return dir;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] extends object ? Writable<T[K]> : T[K] };

function flowVla({ image }: Writable<ModelFile>) {
  return {
    image: { ...image, width: 28, height: 28, tokens: 4 },
    architecture: {
      seed: 7,
      vision: { width: 32, layers: 1, heads: 2, mlp: 64, patch: 14 },
      language: { width: 32, layers: 2, heads: 2, kv_heads: 1, head_dim: 16, mlp: 64 },
      expert: { width: 32, mlp: 64, time_width: 32 },
      tokenizer: { merges: 100 },
    },
  };
}

function worldAction({ image }: Writable<ModelFile>) {
  return {
    image: { ...image, width: 32, height: 32, tokens: 4 },
    frames: { first: 1, later: 2 },
    memory: { window: 3, tokens: 8, first: 1, later: 1 },
    architecture: {
      seed: 8,
      transformer: { width: 32, layers: 2, heads: 2, head_dim: 16, mlp: 64, time_width: 32, patch: 16, channels: 4 },
      tokenizer: { merges: 100 },
    },
  };
}

/** One observation of the right shape, without expected rows. */
async function withoutRows(dir: string, { cameras, state, action }: Writable<ModelFile>): Promise<Parity> {
  const parity = JSON.parse(await readFile(join(dir, "parity/chunk.json"), "utf8")) as Parity;
  const [first] = parity.observations;
  if (!first) throw new Error("no observation");
  const actions = Array.from({ length: action.rows }, () => Array(action.columns.length).fill(0));
  const frames = first.frames.slice(0, cameras.length);
  return {
    ...parity,
    observations: [{ ...first, frames, state: first.state.slice(0, state.columns.length), actions }],
  };
}

/** A robot that is not a YAM, under an id of its operator's own: one arm of seven values, two cameras, 50 rows. */
export const ARM = "lab/so101:pick";

const ARM_NAMES = ["shoulder.pan", "shoulder.lift", "elbow", "wrist.flex", "wrist.roll", "wrist.yaw", "gripper"];

export async function armBundle(): Promise<FlowBundle> {
  return await seventhBundle("flow-vla", (model, norm) => {
    model.id = ARM;
    model.cameras = ["front view", "wrist"];
    Object.assign(model.action, { space: "vector", rows: 50, hz: 20 });
    model.state.kind = "vector";
    model.state.columns = model.state.columns
      .slice(0, 7)
      .map((column, index) => ({ ...column, name: ARM_NAMES[index] ?? "", unit: "deg", from: "state", index }));
    model.action.columns = model.action.columns
      .slice(0, 7)
      .map((column, index) => ({ ...column, name: ARM_NAMES[index] ?? "", unit: "deg", min: -180, max: 180 }));
    for (const side of [norm.state, norm.action])
      for (const [name, values] of Object.entries(side)) Object.assign(side, { [name]: values.slice(0, 7) });
  });
}
