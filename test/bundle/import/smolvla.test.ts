/**
 * SmolVLA as LeRobot publishes it: its graphs with the tensors of a checkpoint. Image tokens, keys, values and velocities are compared with
 * those of LeRobot's own code. The checkpoint and what was computed are written by test/vectors/publishers/smolvla.py.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import type { Architecture, Facts } from "../../../src/bundle/architecture.ts";
import { flowVla, flowVlaMismatch } from "../../../src/bundle/flow-vla.ts";
import { GraphBuilder } from "../../../src/bundle/graph.ts";
import { imageInput } from "../../../src/bundle/image-input.ts";
import { Checkpoint } from "../../../src/bundle/import/checkpoint.ts";
import { CheckpointWeights } from "../../../src/bundle/import/checkpoint-weights.ts";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { TensorFile, valuesOf } from "../../../src/bundle/import/safetensors.ts";
import { isUnused, sizesOf, smolVlaTable } from "../../../src/bundle/import/smolvla-weights.ts";
import { vision } from "../../../src/bundle/vision.ts";
import { DEFAULT_BUILD } from "../../../src/bundle/weights.ts";
import { present } from "../../../src/std/assert.ts";
import { ok } from "../../engine/opened.ts";
import { emptyDir } from "../built.ts";
import { robotFile, robotToml } from "./robots.ts";

const FOLDER = join(import.meta.dir, "../../vectors/publishers/smolvla");
const LIMIT = 1e-4;
const [SIDE, TOKENS, ROWS, WIDTH, STEPS, TEXT] = [32, 4, 5, 32, 10, 48];

const checkpoint = ok(await Checkpoint.open(join(FOLDER, "checkpoint")));
const golden = ok(TensorFile.open(join(FOLDER, "golden/golden.safetensors")));
const attention = { attention_mode: "cross_attn", self_attn_every_n_layers: 2 };
const sizes = sizesOf(checkpoint.tensors, attention);
const table = smolVlaTable(sizes);
const weights = () => new CheckpointWeights(DEFAULT_BUILD, checkpoint.tensors, table);

const { queries, keys } = sizes;
const architecture: Architecture = {
  seed: 0,
  tokenizer: { merges: 0 },
  vision: { ...sizes.vision, heads: 12 },
  language: { ...sizes.language, heads: 15, kv_heads: (15 * keys) / queries, head_dim: queries / 15 },
  expert: sizes.expert,
  inputs: { state: "prefix" },
};
const vocabulary = present(sizes.language.vocabulary, "rows of the table");

/** Facts with as many cameras as the case has pictures. */
function factsOf(views: number): Facts {
  const image = { width: SIDE, height: SIDE, tokens: TOKENS, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] };
  return {
    id: "lab/smolvla:arm",
    reference: false,
    source: "a test",
    family: "flow-vla",
    cameras: ["up", "arm"].slice(0, views),
    frames: { first: 1, later: 1 },
    ...{ memory: null, guidance: null },
    image,
    state: { width: WIDTH },
    prompt: { tokens_max: TEXT, parts: [{ kind: "instruction" }] },
    action: { rows: ROWS, width: WIDTH },
    flow: { t_start: 1, t_end: 0, steps: STEPS, shift: 1 },
  } as unknown as Facts;
}

const floats = (name: string): Float32Array => valuesOf(present(golden.tensors.get(name), name));

function integers(name: string): BigInt64Array {
  const { file, begin, bytes } = present(golden.tensors.get(name), name);
  return new BigInt64Array(Uint8Array.from(readFileSync(file.path).subarray(begin, begin + bytes)).buffer);
}

function largest(found: Float32Array, expected: Float32Array): number {
  expect(found.length).toBe(expected.length);
  return found.reduce((most, value, at) => Math.max(most, Math.abs(value - (expected[at] ?? Number.NaN))), 0);
}

async function run(graph: GraphBuilder, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
  const session = await InferenceSession.create(graph.bytes());
  return (await session.run(feeds)) as Record<string, Tensor>;
}

const float32 = (values: Float32Array, shape: readonly number[]) => new Tensor("float32", values, [...shape]);
const joined = (parts: readonly Float32Array[]) => Float32Array.from(parts.flatMap((part) => [...part]));

/** What prefill is given in case N, and which tokens of the prefix are valid. */
function given(number: number) {
  const views = [0, 1].filter((view) => golden.tensors.has(`${number}.images.${view}`));
  const ids = integers(`${number}.tokens`);
  const count = ids.length;
  const tokens = BigInt64Array.from({ length: TEXT }, (_, at) => ids[at] ?? 2n);
  const state = new Float32Array(WIDTH);
  state.set(floats(`${number}.state`));
  const seen = views.length * TOKENS;
  const valid = [...Array(seen + count).keys(), seen + TEXT];
  const images = joined(views.map((view) => floats(`${number}.images.${view}`)));
  const feeds = {
    images: float32(images, [1, views.length, 3, SIDE, SIDE]),
    tokens: new Tensor("int64", tokens, [1, TEXT]),
    token_mask: new Tensor("bool", new Uint8Array(TEXT).fill(1, 0, count), [1, TEXT]),
    state: float32(state, [1, WIDTH]),
  };
  return { views, valid, feeds, facts: factsOf(views.length) };
}

/** The valid tokens of a cache [1, K, S, D], as [K, valid, D]. */
function tokensOf({ data, dims }: Tensor, valid: readonly number[]): Float32Array {
  const [, heads = 0, length = 0, width = 0] = dims;
  const row = (head: number, token: number) => {
    const start = (head * length + token) * width;
    return (data as Float32Array).slice(start, start + width);
  };
  return joined([...Array(heads).keys()].flatMap((head) => valid.map((token) => row(head, token))));
}

test("sizes are those of the tensors, and every tensor is read or known to be of no use", () => {
  expect(flowVlaMismatch(factsOf(2), architecture, vocabulary)).toBeUndefined();
  const own = weights();
  flowVla(factsOf(2), architecture, vocabulary, own);
  expect(own.faults).toEqual([]);
  const names = [...checkpoint.tensors.keys()];
  expect(names.filter((name) => own.used.has(name) === isUnused(name, sizes))).toEqual([]);
});

describe.each([0, 1, 2, 3, 4])("case %d", (number) => {
  const { views, valid, feeds, facts } = given(number);

  test("image tokens", async () => {
    const graph = new GraphBuilder("tower", facts, weights());
    const { width, height } = facts.image;
    const images = imageInput(graph, { name: "images", lead: ["batch", views.length], width, height }, facts.image);
    const { scale: _, ...unscaled } = architecture.vision;
    const tokens = vision(graph, images, views.length, facts, { ...architecture, vision: unscaled });
    const shape = ["batch", views.length * TOKENS, architecture.language.width] as const;
    graph.output(tokens, { name: "image_tokens", dtype: "f32", shape: [...shape] }, "cache");
    const { image_tokens } = await run(graph, { images: feeds.images });
    const expected = joined(views.map((view) => floats(`${number}.image_tokens.${view}`)));
    expect(largest(present(image_tokens, "image tokens").data as Float32Array, expected)).toBeLessThan(LIMIT);
  });

  test("keys and values of every layer", async () => {
    // An expert that projects nothing: prefill then writes the caches themselves.
    const plain = sizesOf(checkpoint.tensors, { ...attention, attention_mode: "self_attn" });
    const own = new CheckpointWeights(DEFAULT_BUILD, checkpoint.tensors, smolVlaTable(plain));
    const { prefill } = flowVla(facts, { ...architecture, expert: plain.expert }, vocabulary, own);
    const found = await run(prefill, feeds);
    for (const { layer } of plain.expert.blocks) {
      for (const part of ["past_k", "past_v"]) {
        const cache = tokensOf(present(found[`${part}_${layer}`], part), valid);
        expect(largest(cache, floats(`${number}.${part}.${layer}`))).toBeLessThan(LIMIT);
      }
    }
  });

  test("velocity of every step", async () => {
    expect(await velocityFault(number, architecture)).toBeLessThan(LIMIT);
  });
});

const { language, expert } = architecture;
const { rows: _rows, ...seeing } = expert;
test.each([
  ["rows that see all rows", { expert: seeing }],
  ["GELU in the expert", { expert: { ...expert, activation: "gelu" } }],
  ["GELU in the language model", { language: { ...language, activation: "gelu" } }],
  ["the backbone's base of rotary positions", { language: { ...language, rope_base: 100_000 } }],
  ["image tokens as they are", { vision: { ...architecture.vision, scale: 1 } }],
] as [string, Partial<Architecture>][])("the velocity shows a mistake: %s", async (_, changed) => {
  expect(await velocityFault(0, { ...architecture, ...changed })).toBeGreaterThan(LIMIT);
});

/** The largest difference of a velocity from LeRobot's over all steps. */
async function velocityFault(number: number, built: Architecture): Promise<number> {
  const { feeds, facts } = given(number);
  const { prefill, denoise } = flowVla(facts, built, vocabulary, weights());
  const cache = await run(prefill, feeds);
  const session = await InferenceSession.create(present(denoise, "its flow").bytes());
  const latent = floats(`${number}.noise`).slice();
  let most = 0;
  for (let step = 0; step < STEPS; step += 1) {
    const time = float32(Float32Array.of(1 + step * (-1 / STEPS)), [1]);
    const found = await session.run({ ...cache, t: time, x_t: float32(latent, [1, ROWS, WIDTH]) });
    const velocity = present(found.v_t, "velocity").data as Float32Array;
    most = Math.max(most, largest(velocity, floats(`${number}.velocity.${step}`)));
    for (const [at, value] of latent.entries()) latent[at] = value + Math.fround(-1 / STEPS) * (velocity[at] ?? 0);
  }
  return most;
}

test("import: facts are those of the configuration, the processors and the robot file, in the policy's order of views", async () => {
  const out = join(await emptyDir(), "bundle");
  const columns = Array.from({ length: 6 }, (_, at) => `joint_${at}`);
  const manifest = ok(
    await importBundle(join(FOLDER, "checkpoint"), out, {
      id: "lab/smolvla:arm",
      robot: await robotFile({ cameras: ["arm", "up"], columns }),
      precision: "f32",
      computeRows: async (_, { observations }) => observations,
      draw: async () => [new Uint8Array()],
    }),
  );
  const { cameras, image, state, prompt, action, flow, graphs } = manifest;
  expect(cameras).toEqual(["arm", "up"]);
  expect(image).toMatchObject({
    width: SIDE,
    resize: "pad",
    place: "bottom_right",
    filter: "torch-bilinear",
    tokens: TOKENS,
  });
  expect(state).toMatchObject({
    width: WIDTH,
    columns: columns.map((name) => ({ name, norm: "mean_std", epsilon: 1e-8 })),
  });
  expect(prompt).toMatchObject({
    tokens_max: TEXT,
    parts: [{ kind: "template", text: "{instruction}", clean: ["end_newline"] }],
  });
  expect([action.rows, action.width, flow?.t_start, flow?.steps]).toEqual([ROWS, WIDTH, 1, STEPS]);
  const views = graphs.prefill.inputs.filter(({ role }) => role === "images").map(({ name }) => name);
  expect(views).toEqual(["image_up", "image_arm"]);
});

test("import: the heads of a backbone that is not known are asked for in the robot file, and read there", async () => {
  const dir = await emptyDir();
  await cp(join(FOLDER, "checkpoint"), dir, { recursive: true });
  const config = await Bun.file(join(dir, "config.json")).json();
  await writeFile(join(dir, "config.json"), JSON.stringify({ ...config, vlm_model_name: "lab/SmolVLM-own" }));
  const columns = Array.from({ length: 6 }, (_, at) => `joint_${at}`);
  const toml = robotToml({ cameras: ["arm", "up"], columns });
  const imported = async (robot: string, from = dir) =>
    importBundle(from, join(await emptyDir(), "bundle"), {
      ...{ id: "lab/smolvla:arm", robot: await robotFile(robot), precision: "f32" },
      computeRows: async (_, { observations }) => observations,
      draw: async () => [new Uint8Array()],
    });
  const asked = await imported(toml);
  const line = "backbone = { heads = 0, vision_heads = 0 }";
  expect(asked).toMatchObject({ message: expect.stringContaining(line), exit: 2 });
  const heads = line.replace("heads = 0", "heads = 15").replace("vision_heads = 0", "vision_heads = 12");
  ok(await imported(`${heads}\n${toml}`));
  const wrong = await imported(`${heads.replace("15", "7")}\n${toml}`);
  expect(wrong).toMatchObject({ message: expect.stringContaining("the backbone has 7 heads") });
  const needless = await imported(`${heads}\n${toml}`, join(FOLDER, "checkpoint"));
  expect(needless).toMatchObject({ message: expect.stringContaining("backbone, which it need not be told") });
});
