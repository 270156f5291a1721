/** A small bundle of the family act, with random weights and the rows that onnxruntime-node computes of its graph. */
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import sharp from "sharp";
import { type ActArchitecture, act, actMismatch } from "../../src/bundle/act.ts";
import type { PlainFacts } from "../../src/bundle/architecture.ts";
import { writeFiles } from "../../src/bundle/folder.ts";
import { exportId, type Manifest, type NormStats } from "../../src/bundle/manifest.ts";
import { RandomWeights } from "../../src/bundle/random-weights.ts";
import { type Bundle, readBundle } from "../../src/bundle/read.ts";
import { DEFAULT_BUILD } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { ok } from "../engine/opened.ts";
import { emptyDir } from "./built.ts";

const [WIDTH, HEIGHT, STATES, COLUMNS, ROWS] = [72, 40, 5, 3, 100];

export const ARCHITECTURE: ActArchitecture = {
  views: ["wrist", "top"],
  backbone: {
    ...{ stem: 8, bottleneck: false, dilated: false },
    stages: [8, 8, 16, 16].map((channels) => ({ channels, blocks: 1 })),
  },
  ...{ width: 32, heads: 4, mlp: 48, encoder_layers: 2, decoder_layers: 1 },
  ...{ pre_norm: false, activation: "relu", environment: 2 },
};

const column = (name: string) => ({ name, unit: "rad", norm: "mean_std" as const, epsilon: 0 });

export const FACTS: PlainFacts = {
  ...{ id: "lab/act", title: "A small ACT", licence: "none", source: "a test", family: "act", reference: false },
  ...{ stateful: false, cameras: ["top", "wrist"], frames: { first: 1, later: 1 } },
  image: {
    ...{ width: WIDTH, height: HEIGHT, resize: "stretch", filter: "pillow-bilinear", tokens: 3 * 2 },
    ...{ mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
  },
  state: {
    kind: "joint",
    columns: Array.from({ length: STATES }, (_, index) => ({ ...column(`s${index}`), from: "joint_position", index })),
    width: STATES,
  },
  prompt: null,
  action: {
    ...{ rows: ROWS, hz: 50, space: "joint_position", width: COLUMNS, rotation6d: [], out_of_range: "fail" },
    columns: Array.from({ length: COLUMNS }, (_, index) => {
      return { ...column(`s${index}`), relative_to: null, min: -99, max: 99 };
    }),
  },
  ...{ flow: null, guidance: null, memory: null, batch: 2 },
};

const statistics = (count: number) => ({
  mean: Array.from({ length: count }, (_, at) => at / 10),
  std: Array.from({ length: count }, (_, at) => 1 + at / 5),
});
const NORM: NormStats = { state: statistics(STATES), action: statistics(COLUMNS) };

/** The bundle, and its manifest as `change` has left it. */
export async function actBundle(change: (manifest: Manifest) => unknown = () => undefined): Promise<Bundle> {
  const dir = join(await emptyDir(), "bundle");
  const { prefill } = act(FACTS, ARCHITECTURE, new RandomWeights(7, DEFAULT_BUILD));
  const mismatch = actMismatch(FACTS, ARCHITECTURE);
  if (mismatch !== undefined) throw new Error(mismatch);
  const frames = new Map<string, Uint8Array>();
  for (const [index, name] of FACTS.cameras.entries()) frames.set(`${name}.jpg`, await drawn(index));
  const state = [0.3, -0.8, 1.1, 0.2, -0.4];
  const actions = await rowsOf(prefill.bytes(), [...frames.values()], state);
  const observation = { frames: [...frames.keys()], state, step: 0, actions, cache_reset: false };
  const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const data = new Map<string, Uint8Array>([
    ["prefill.onnx", prefill.bytes()],
    ["norm.json", text(NORM)],
    ["parity/chunk.json", text({ instruction: "", seed: 0, observations: [observation], provenance: "a test" })],
    ...[...frames].map(([name, bytes]) => [`parity/${name}`, bytes] as const),
  ]);
  const files = [...data].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
  const parts = { graphs: { prefill: prefill.description }, norm: "norm.json" };
  const parity = { file: "parity/chunk.json", tolerance: 1e-4 };
  const manifest: Manifest = { format: 1, ...FACTS, ...parts, export_id: exportId(files, parts), parity, files };
  change(manifest);
  await writeFiles(dir, data.set("manifest.json", text(manifest)));
  return ok(await readBundle(dir));
}

async function drawn(seed: number): Promise<Uint8Array> {
  const pixels = Uint8Array.from({ length: WIDTH * HEIGHT * 3 }, (_, at) => (at * (37 + seed) + (at >> 4) * 11) & 255);
  return await sharp(pixels, { raw: { width: WIDTH, height: HEIGHT, channels: 3 } })
    .jpeg()
    .toBuffer();
}

/** Rows in robot units. */
async function rowsOf(graph: Uint8Array, jpegs: readonly Uint8Array[], state: readonly number[]): Promise<number[][]> {
  const pixels = WIDTH * HEIGHT;
  const images = new Float32Array(jpegs.length * 3 * pixels);
  for (const [index, jpeg] of jpegs.entries()) {
    const view = ARCHITECTURE.views.indexOf(FACTS.cameras[index] ?? "");
    const rgb = await sharp(jpeg).raw().toBuffer();
    for (let at = 0; at < 3 * pixels; at += 1) {
      const [mean, std] = [FACTS.image.mean[at % 3] ?? 0, FACTS.image.std[at % 3] ?? 1];
      images[(view * 3 + (at % 3)) * pixels + Math.floor(at / 3)] = ((rgb[at] ?? 0) / 255 - mean) / std;
    }
  }
  const scale = (side: "state" | "action", at: number) => {
    return { mean: present(NORM[side].mean?.[at] as number, "a mean"), std: NORM[side].std?.[at] as number };
  };
  const normalised = state.map((value, at) => (value - scale("state", at).mean) / scale("state", at).std);
  const session = await InferenceSession.create(graph);
  const { actions } = await session.run({
    images: new Tensor("float32", images, [1, jpegs.length, 3, HEIGHT, WIDTH]),
    state: new Tensor("float32", Float32Array.from(normalised), [1, STATES]),
  });
  const values = present(actions, "the chunk").data as Float32Array;
  return Array.from({ length: ROWS }, (_, row) =>
    Array.from({ length: COLUMNS }, (_, at) => {
      const { mean, std } = scale("action", at);
      return (values[row * COLUMNS + at] ?? 0) * std + mean;
    }),
  );
}
