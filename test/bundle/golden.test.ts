/** Golden values: a right bundle is within the limits at every stage, and each mistake is found at the stage where it was made. */
import { describe, expect, test } from "bun:test";
import type { Options } from "../../src/bundle/build.ts";
import type { Golden, Manifest, NormStats } from "../../src/bundle/manifest.ts";
import type { ModelProto, NodeProto } from "../../src/bundle/onnx-schema.ts";
import { readBundle, readGolden } from "../../src/bundle/read.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import { compareGolden, goldenLines, offProblem } from "../../src/measure/golden/report.ts";
import type { Stage } from "../../src/measure/golden/stages.ts";
import { promptFault } from "../../src/measure/golden/tokens.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { ok } from "../engine/opened.ts";
import { rehearse } from "../engine/wrong-provider.ts";
import type { FlowManifest } from "./flow-bundle.ts";
import { goldenBundle, graphOf, jsonOf, type Spoil } from "./golden-bundle.ts";

async function compared(spoil?: Spoil, device = "cpu", ...built: [precision?: Precision, options?: Options]) {
  const bundle = ok(await readBundle(await goldenBundle(spoil, ...built)));
  const golden = ok(await readGolden((file) => present(bundle.paths.get(file), file), bundle.manifest));
  return await compareGolden(bundle, present(golden, "golden values"), { device, gpu: gpuOptions() });
}

test("a right bundle is within 1e-4 at every stage, on buckets of both lengths and with a view that has no camera", async () => {
  const { stages, off, cases, limit } = ok(await compared());
  expect(off).toBeUndefined();
  expect([cases, limit]).toEqual([2, 1e-4]);
  const names = [
    "pictures",
    "normalised state",
    "tokens",
    "image tokens",
    "prefix cache",
    "velocity",
    "normalised rows",
    "rows",
  ];
  expect(stages.map(({ stage }) => stage)).toEqual(names as Stage[]);
  expect(Math.max(...stages.map(({ size }) => size))).toBeLessThan(1e-4);
});

test("a device that does not compute in the memory of the host shows its stages too", async () => {
  await rehearse({ device: "cuda:0" });
  const { stages, off } = ok(await compared(undefined, "cuda:0"));
  await rehearse();
  expect([stages.length, off]).toEqual([8, undefined]);
});

test.each([
  ["bf16 weights, which lie in a file of their own", "bf16", {}],
  ["a build in half precision, which reads pixels", "f32", { compute: "f16" }],
] as const)("%s: stages may differ by 1e-2", async (_, precision, options) => {
  const { limit, stages } = ok(await compared(undefined, "cpu", precision, options));
  expect([limit, stages.length]).toEqual([1e-2, 8]);
  const sizeOf = (name: Stage) => stages.find(({ stage }) => stage === name)?.size;
  expect(sizeOf("pictures")).toBe(0);
  expect(sizeOf("image tokens")).toBeGreaterThan(1e-4);
  expect(sizeOf("image tokens")).toBeLessThan(1e-2);
});

type Graph = ModelProto["graph"];

/** Changes the values of an f32 initialiser in place. */
function weight(
  file: "prefill" | "denoise",
  name: string,
  change: (values: Float32Array, dims: number[]) => void,
): Spoil {
  return graphOf(file, ({ initializer }) => {
    const tensor = present(
      initializer.find((one) => one.name === name),
      name,
    );
    const values = new Float32Array(new Uint8Array(tensor.rawData).buffer);
    change(values, tensor.dims.map(Number));
    tensor.rawData = new Uint8Array(values.buffer);
  });
}

const scaled = (factor: number) => (values: Float32Array) => values.set(values.map((value) => factor * value));
const more = (added: number) => (values: Float32Array) => values.set(values.map((value) => value + added));

function transposed(values: Float32Array, [rows = 0, columns = 0]: number[]): void {
  const old = values.slice();
  values.forEach((_, at) => {
    values[at] = old[(at % rows) * columns + Math.floor(at / rows)] ?? 0;
  });
}

function node(opType: string, input: string[], output: string, attributes: Record<string, number> = {}): NodeProto {
  const attribute = Object.entries(attributes).map(([name, i]) => ({ name, type: 2, i: BigInt(i) }));
  return { name: output, opType, input, output: [output], attribute };
}

function named({ node: nodes }: Graph, name: string): NodeProto {
  return present(
    nodes.find((one) => one.name === name),
    name,
  );
}

/** Puts nodes behind the one named so; `last` gives the value that is read in place of its output. */
function behind(graph: Graph, name: string, make: (value: string) => NodeProto[]): void {
  const before = named(graph, name);
  const value = present(before.output[0], "its output");
  const made = make(`${value}/right`);
  for (const one of graph.node) one.output = one.output.map((output) => (output === value ? `${value}/right` : output));
  present(made.at(-1), "a node").output = [value];
  graph.node.splice(graph.node.indexOf(before) + 1, 0, ...made);
}

function ints(graph: Graph, name: string, values: number[]): string {
  const rawData = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  graph.initializer.push({ name, dims: [BigInt(values.length)], dataType: 7, rawData });
  return name;
}

/** Every token of the prefix sees itself and those before it. */
const causal = graphOf("prefill", (graph) =>
  behind(graph, "language.blocks.0.softmax", (value) => [
    node("Reshape", [value, ints(graph, "heads", [0, 4, -1, 0])], "square"),
    node("Trilu", ["square"], "lower", { upper: 0 }),
    node("ReduceSum", ["lower", ints(graph, "last axis", [-1])], "sums", { keepdims: 1 }),
    node("Div", ["lower", "sums"], "mixed"),
    node("Reshape", ["mixed", ints(graph, "groups", [0, 2, -1, 0])], "back"),
  ]),
);

const silu = graphOf("denoise", (graph) => {
  const gelu = named(graph, "expert.blocks.0.mlp.gelu");
  const [x = "", y = ""] = [gelu.input[0], gelu.output[0]];
  graph.node.splice(graph.node.indexOf(gelu), 1, node("Sigmoid", [x], "gate"), node("Mul", [x, "gate"], y));
});

const fromZero = graphOf("denoise", (graph) => {
  const add = named(graph, "expert.add");
  const [count = ""] = add.input;
  graph.node.splice(graph.node.indexOf(add), 0, node("Mul", [count, ints(graph, "none", [0])], "no prefix"));
  add.input[0] = "no prefix";
});

const oneTooHigh = graphOf("denoise", ({ initializer }) => {
  const rows = present(
    initializer.find(({ name }) => name === "ints 0 1 2 3 4 5"),
    "the numbers of the rows",
  );
  rows.rawData = new Uint8Array(BigInt64Array.from([1, 2, 3, 4, 5, 6], BigInt).buffer);
});

const norm = (change: (stats: NormStats) => void) => jsonOf<NormStats>("norm.json", change);
const facts =
  (change: (manifest: FlowManifest) => void): Spoil =>
  (_, manifest) =>
    change(manifest);

const otherTokenizer = jsonOf<{ model: { vocab: Record<string, number> } }>(
  "tokenizer.json",
  ({ model: { vocab } }) => {
    [vocab.e, vocab.o] = [vocab.o ?? 0, vocab.e ?? 0];
  },
);

const swappedCameras = facts(({ graphs }) => {
  for (const port of graphs.prefill.inputs) {
    if (port.cameras?.[0] !== "shoulder") port.cameras &&= [port.cameras[0] === "top" ? "wrist" : "top"];
  }
});

const template = (change: { text?: string; bins?: number }) =>
  facts(({ prompt }) => Object.assign(present(prompt?.parts[1], "the template"), change));

/** What is wrong, the stage that is named, and words about the place. */
const MISTAKES: readonly (readonly [what: string, spoil: Spoil, stage: Stage, where: RegExp])[] = [
  [
    "another place of the picture",
    facts(({ image }) => (image.place = "bottom_right")),
    "pictures",
    /view 0 \(top\), channel/,
  ],
  [
    "a picture that is stretched",
    facts(({ image }) => (image.resize = "stretch")),
    "pictures",
    /channel \d, row \d+, column/,
  ],
  ["other means of the pixels", facts(({ image }) => (image.mean = [0.4, 0.5, 0.5])), "pictures", /channel 0/],
  ["cameras that are swapped", swappedCameras, "pictures", /view 0 \(wrist\)/],
  [
    "the norm file of another robot, state",
    norm(({ state }) => state.q99?.splice(0, 4, 1, 1, 1, 1)),
    "normalised state",
    /^column \d/,
  ],
  [
    "the norm file of another robot, actions",
    norm(({ action }) => action.q99?.splice(0, 4, 1, 1, 1, 1)),
    "rows",
    /^row \d, column \d/,
  ],
  ["another tokenizer", otherTokenizer, "tokens", /^token \d+ is \d+ ".*", expected \d+ "/],
  [
    "another text around the instruction",
    template({ text: "Task: {instruction} State: {state};\nAction: " }),
    "tokens",
    /^token \d+ is/,
  ],
  [
    "a prompt that leaves the state out",
    facts(({ prompt }) => prompt?.parts.splice(1, 1, { kind: "instruction" })),
    "tokens",
    /^token/,
  ],
  [
    "other bins",
    template({ bins: 255 }),
    "tokens",
    /^state bin: column \d \(\w+\), -?[\d.]+ after normalising, is in bin \d+, expected \d+/,
  ],
  [
    "a transposed projection of the images",
    weight("prefill", "vision.projection.weight", transposed),
    "image tokens",
    /view 0 \(top\)/,
  ],
  [
    "rows of a weight permuted",
    weight("prefill", "language.blocks.0.value.weight", (values) => values.reverse()),
    "prefix cache",
    /layer 0, values/,
  ],
  [
    "an embedding that is scaled twice, of which the first norm sees nothing",
    weight("prefill", "language.embedding", scaled(Math.sqrt(32))),
    "prefix cache",
    /layer 1, keys/,
  ],
  [
    "an embedding that is not scaled",
    weight("prefill", "language.embedding", scaled(1 / Math.sqrt(32))),
    "prefix cache",
    /layer 1, keys/,
  ],
  ["w for 1 + w", weight("prefill", "language.blocks.1.norm1.scale", more(-1)), "prefix cache", /layer 1, keys/],
  ["a causal prefix", causal, "prefix cache", /layer 1, keys/],
  [
    "a table of positions that is too short",
    weight("prefill", "rope.positions", (values) => values.fill(63, 64)),
    "prefix cache",
    /layer 0, keys, head \d, token (6[4-9]|[7-9]\d|1\d\d)/,
  ],
  [
    "a transposed weight of the expert",
    weight("denoise", "expert.blocks.0.output.weight", transposed),
    "velocity",
    /^step 0/,
  ],
  ["SiLU for GELU in the expert", silu, "velocity", /^step 0/],
  ["positions of rows from 0", fromZero, "velocity", /^step 0/],
  ["positions of rows one too high", oneTooHigh, "velocity", /^step 0/],
  [
    "a sinusoid in half precision",
    weight("denoise", "time.table", (values) => values.set(new Float16Array(values))),
    "velocity",
    /^step \d/,
  ],
  [
    "a weight that is no number",
    weight("denoise", "expert.action_out.bias", (values) => (values[3] = Number.NaN)),
    "velocity",
    /column 3: NaN/,
  ],
  [
    "times in the other direction",
    facts(({ flow }) => Object.assign(flow ?? {}, { t_start: 0, t_end: 1 })),
    "velocity",
    /^step 0/,
  ],
  ["times with another shift", facts(({ flow }) => Object.assign(flow ?? {}, { shift: 3 })), "velocity", /^step 1/],
  [
    "an action that is relative to the other joint",
    facts(({ action }) => (present(action.columns[1], "a column").relative_to = 0)),
    "rows",
    /column 1/,
  ],
];

describe("a mistake is found at its own stage", () => {
  test.each(MISTAKES)("%s", async (_, spoil, stage, where) => {
    const result = ok(await compared(spoil));
    const off = present(result.off, "a stage that is off");
    expect(off.stage).toBe(stage);
    expect(off.where).toMatch(where);
    expect(offProblem(off).message).toContain(`the first stage that is off is ${stage}`);
    expect(goldenLines(result)).toMatch(new RegExp(`OFF ${stage}`));
  });
});

test("a state with other columns is told as bins", () => {
  const columns = [{ name: "joint" }] as Manifest["state"]["columns"];
  const prompt = { parts: [{ kind: "state_tokens", base: 10, bins: 4 }] } as unknown as Manifest["prompt"];
  const fault = (found: number[], expected: number[]) =>
    promptFault(found, expected, { prompt, state: { columns } as Manifest["state"] }, [0.25], new Map([[3, "a"]]));
  expect(fault([3, 11, 10], [3, 11])).toBe("state bin: found 2 bins, expected 1");
  expect(fault([3, 12], [3, 11])).toBe("state bin: column 0 (joint), 0.25 after normalising, is in bin 2, expected 1");
  expect(fault([3, 11], [3, 11, 20])).toBe('token 2 is none, expected 20 "?"');
  expect(fault([3, 11], [3, 11])).toBeUndefined();
});

describe("golden values that do not fit", () => {
  const golden = (change: (golden: Golden) => unknown) => jsonOf<Golden>("parity/golden.json", change);
  const first = ({ cases }: Golden) => present(cases[0], "a case");

  test("cases with other cameras are left out; a bundle for which none is left is refused", async () => {
    const blind = ({ frames }: Golden["cases"][number]) => {
      frames.wrist = null;
    };
    const one = ok(await compared(golden((all) => blind(first(all)))));
    expect([one.cases, one.leftOut, one.off]).toEqual([1, 1, undefined]);
    expect(goldenLines(one)).toStartWith(
      "1 golden cases, 1 left out because their cameras or prompts do not fit the bundle, at most",
    );
    const none = await compared(golden(({ cases }) => cases.forEach(blind)));
    expect((none as Problem).message).toContain("none of the 2 golden cases has pictures of exactly top, wrist");
  });

  test("a bundle is refused whose cases have another state or an unlisted frame, or whose values are missing", async () => {
    const message = async (spoil: Spoil) => {
      const read = await readBundle(await goldenBundle(spoil));
      return read instanceof Problem ? read.message : "";
    };
    expect(await message(golden((all) => first(all).state.push(0)))).toContain(
      "/cases/0/state: found 5 values, expected 4",
    );
    expect(await message(golden((all) => Object.assign(first(all).frames, { top: "a.jpg" })))).toContain(
      "/cases/0/frames/top: found a.jpg, expected a file listed in the manifest",
    );
    expect(await message((files) => files.delete("parity/golden.safetensors"))).toContain("golden.safetensors");
  });
});
