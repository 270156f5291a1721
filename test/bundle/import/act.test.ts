/** ACT's weights and graph against what LeRobot's own class computes (test/vectors/publishers/act.py). */
import { expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { act, actMismatch } from "../../../src/bundle/act.ts";
import { ActConfig, actArchitecture, observedOf } from "../../../src/bundle/import/act.ts";
import { actTable, isUnusedOfAct } from "../../../src/bundle/import/act-weights.ts";
import { Checkpoint } from "../../../src/bundle/import/checkpoint.ts";
import { CheckpointWeights } from "../../../src/bundle/import/checkpoint-weights.ts";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { TensorFile, valuesOf } from "../../../src/bundle/import/safetensors.ts";
import type { Golden } from "../../../src/bundle/manifest.ts";
import { DATA_TYPE, decodeModel } from "../../../src/bundle/onnx-schema.ts";
import { readBundle, readGolden } from "../../../src/bundle/read.ts";
import { featureEdge } from "../../../src/bundle/resnet.ts";
import { DEFAULT_BUILD, HALVES } from "../../../src/bundle/weights.ts";
import { computeRows } from "../../../src/cli/bundle/rows.ts";
import { gpuOptions } from "../../../src/config/gpu.ts";
import { openEngine } from "../../../src/engine/native.ts";
import { compareGolden } from "../../../src/measure/golden/report.ts";
import { sampleFrames } from "../../../src/measure/sample/drawing.ts";
import { present } from "../../../src/std/assert.ts";
import { Problem } from "../../../src/std/problem.ts";
import { Opened, ok } from "../../engine/opened.ts";
import { FACTS } from "../act-bundle.ts";
import { emptyDir } from "../built.ts";
import type { FlowBundle } from "../flow-bundle.ts";
import { roundedEverywhereOf, traced } from "../rounded.ts";
import { robotFile } from "./robots.ts";

const DIR = join(import.meta.dir, "../../vectors/publishers/act");

async function parts() {
  const config: unknown = JSON.parse(await readFile(join(DIR, "checkpoint/config.json"), "utf8"));
  if (!Value.Check(ActConfig, config)) throw new Error([...Value.Errors(ActConfig, config)].join());
  const observed = observedOf(config);
  if (typeof observed === "string") throw new Error(observed);
  const { tensors } = ok(await Checkpoint.open(join(DIR, "checkpoint")));
  return { config, observed, tensors: new Map(tensors) };
}

test("every tensor is read or known to be of training, and the chunk is LeRobot's within 1e-5", async () => {
  const { config, observed, tensors } = await parts();
  const { views, width, height, state, environment } = observed;
  const size = actArchitecture(config, observed, tensors);
  const weights = new CheckpointWeights(DEFAULT_BUILD, tensors, actTable(size));
  const tokens = featureEdge(width, size.backbone) * featureEdge(height, size.backbone);
  const facts = {
    ...{ ...FACTS, cameras: [...views], image: { ...FACTS.image, width, height, tokens } },
    state: { ...FACTS.state, width: state + environment },
    action: { ...FACTS.action, rows: config.chunk_size, width: config.output_features.action.shape[0] ?? 0 },
  };
  expect(actMismatch(facts, size)).toBeUndefined();
  const bytes = act(facts, size, weights).prefill.bytes();
  expect(weights.faults).toEqual([]);
  expect([...tensors.keys()].filter((name) => !weights.used.has(name) && !isUnusedOfAct(name))).toEqual([]);

  const session = await InferenceSession.create(bytes);
  const golden = ok(TensorFile.open(join(DIR, "golden/golden.safetensors")));
  const read = (name: string) => valuesOf(present(golden.tensors.get(name), name));
  // Pictures are kept of the first cases: they are most of the bytes.
  let at = 0;
  for (; golden.tensors.has(`${at}.images.0`); at += 1) {
    const pictures = Float32Array.from(views.flatMap((_, view) => [...read(`${at}.images.${view}`)]));
    const { actions } = await session.run({
      images: new Tensor("float32", pictures, [1, views.length, 3, height, width]),
      state: new Tensor("float32", read(`${at}.state`), [1, state]),
    });
    const rows = present(actions, "the chunk").data as Float32Array;
    const apart = read(`${at}.actions`).map((value, index) => Math.abs(value - (rows[index] ?? Number.NaN)));
    expect(apart.every((difference) => difference < 1e-5)).toBe(true);
  }
  expect(at).toBe(2);
});

test("what does not fit is named: a batch norm of another layer, a table of another size, a missing tensor", async () => {
  const { config, observed, tensors } = await parts();
  const size = actArchitecture(config, observed, tensors);
  const at = (name: string) => present(tensors.get(name), name);
  const wide = at("model.backbone.layer4.0.bn1.running_var");
  tensors.set("model.backbone.layer1.0.bn1.running_var", wide);
  tensors.set("model.decoder_pos_embed.weight", at("model.encoder_1d_feature_pos_embed.weight"));
  tensors.delete("model.encoder.layers.0.self_attn.in_proj_bias");
  const weights = new CheckpointWeights(DEFAULT_BUILD, tensors, actTable(size));
  const { width, height, views } = observed;
  const image = { ...FACTS.image, width, height, tokens: 6 };
  const state = { ...FACTS.state, width: observed.state };
  act({ ...FACTS, cameras: [...views], image, state, action: { ...FACTS.action, rows: 7, width: 6 } }, size, weights);
  const [channels] = at("model.backbone.conv1.weight").shape;
  expect([...weights.faults].sort()).toEqual([
    `model.backbone.layer1.0.bn1.running_var is [${wide.shape}], expected [${channels}]`,
    "model.decoder_pos_embed.weight is [2,32], expected [7,32]",
    "model.encoder.layers.0.self_attn.in_proj_bias is missing, expected [96]",
  ]);
});

test.each(["act"])(
  "%s, imported: every case's rows are LeRobot's from JPEG and state on, within 1e-4",
  async (name) => {
    const folder = join(DIR, "..", name);
    const golden: Golden = JSON.parse(await readFile(join(folder, "golden/golden.json"), "utf8"));
    const { cases } = golden;
    const cameras = Object.keys(present(cases[0], "a case").frames).map((key) =>
      key.replace("observation.images.", ""),
    );
    const columns = Array.from({ length: present(cases[0], "a case").state.length }, (_, at) => `joint_${at}`);
    const out = join(await emptyDir(), "bundle");
    // The wire has the cameras in another order than the policy.
    const robot = await robotFile({ cameras: cameras.toReversed(), columns });
    const plain = {
      precision: "f32" as const,
      computeRows,
      draw: () => Promise.reject(new Error("no drawing is needed")),
    };
    ok(
      await importBundle(join(folder, "checkpoint"), out, {
        ...plain,
        id: "lab/act",
        robot,
        golden: join(folder, "golden"),
      }),
    );
    const bundle = ok(await readBundle(out));
    const { tokenizer, prompt, flow, graphs } = bundle.manifest;
    expect([tokenizer, prompt, flow, Object.keys(graphs)]).toEqual([undefined, null, null, ["prefill"]]);
    for (const column of bundle.manifest.action.columns) delete column.max_step;
    await using opened = await Opened.with(ok(await openEngine({ decodeThreads: 1 })), bundle);
    const values = ok(TensorFile.open(join(folder, "golden/golden.safetensors")));
    for (const [number, { state, frames }] of cases.entries()) {
      const names = cameras.toReversed().map((camera) => frames[`observation.images.${camera}`] ?? "");
      const jpegs = await Promise.all(names.map((file) => readFile(join(folder, "golden", file))));
      const chunk = await opened.give({ jpegs, state, instruction: "", seed: 0, step: 0 });
      const rows = valuesOf(present(values.tensors.get(`${number}.rows`), "rows"));
      const apart = chunk.actions.map((value, at) => Math.abs(value - (rows[at] ?? Number.NaN)));
      expect(Math.max(...apart)).toBeLessThan(1e-4);
    }
  },
);

test("without golden values its own rows are of drawings in the size that it takes", async () => {
  const out = join(await emptyDir(), "bundle");
  const made = await importBundle(join(DIR, "checkpoint"), out, {
    ...{ id: "lab/act", robot: join(DIR, "robot.toml"), precision: "f32", computeRows },
    draw: (size) => sampleFrames(0, size),
  });
  expect(made).not.toBeInstanceOf(Problem);
  expect((await readdir(join(out, "parity"))).sort()).toEqual(["camera-0.jpg", "camera-1.jpg", "chunk.json"]);
});

test("builds for GPUs have operators that CUDA has, and those of bf16 give LeRobot's rows up to its rounding", async () => {
  for (const compute of [undefined, ...HALVES]) {
    const out = join(await emptyDir(), "bundle");
    const how = {
      id: "lab/act:arm",
      robot: join(DIR, "robot.toml"),
      golden: join(DIR, "golden"),
      precision: "f32",
    } as const;
    const built = compute && { compute };
    ok(
      await importBundle(join(DIR, "checkpoint"), out, { ...how, ...built, computeRows, draw: () => sampleFrames(0) }),
    );
    const { graph, opsetImport } = decodeModel(await readFile(join(out, "prefill.onnx")));
    const { nodes, typeOf } = traced(graph);
    // ONNX Runtime 1.30 has MaxPool for CUDA up to opset 21, without bfloat16, and Pad without bfloat16.
    const pools = nodes.filter(({ opType }) => opType === "MaxPool");
    expect([pools.length, opsetImport[0]?.version]).toEqual(compute === "bf16" ? [0, 23n] : [1, 21n]);
    const pads = nodes.filter(({ opType }) => opType === "Pad");
    for (const { input } of pads) expect(typeOf(present(input[0], "what is padded"))).toBe(DATA_TYPE.f32);
    if (compute !== "bf16") continue;
    const bundle = await roundedEverywhereOf(ok(await readBundle(out)) as FlowBundle, compute);
    const golden = present(
      ok(await readGolden((file) => present(bundle.paths.get(file), file), bundle.manifest)),
      "it",
    );
    const compared = ok(await compareGolden(bundle, golden, { device: "cpu", gpu: gpuOptions() }, 0.05));
    expect(compared.off).toBeUndefined();
  }
});
