/** Golden values: a right bundle is within the limits at every stage, and each mistake is found at the stage where it was made. */
import { describe, expect, test } from "bun:test";
import type { Options } from "../../src/bundle/build.ts";
import type { Golden, Manifest } from "../../src/bundle/manifest.ts";
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
import { goldenBundle } from "./golden-bundle.ts";
import { facts, jsonOf, norm, otherTokenizer, type Spoil, swappedCameras } from "./spoiled-bundle.ts";
import { causalPrefix, fromZero, more, numbered, scaled, silu, transposed, weight } from "./spoiled-graph.ts";

async function compared(spoil?: Spoil, device = "cpu", ...built: [precision?: Precision, options?: Options]) {
  const bundle = ok(await readBundle(await goldenBundle(spoil, ...built)));
  const golden = ok(await readGolden((file) => present(bundle.paths.get(file), file), bundle.manifest));
  return await compareGolden(bundle, present(golden, "golden values"), { device, gpu: gpuOptions() });
}

test("a right bundle is within 1e-4 at every stage, on buckets of both lengths and with a view that has no camera", async () => {
  const { stages, off, cases } = ok(await compared());
  expect(off).toBeUndefined();
  expect(cases).toBe(2);
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

const rounded: Spoil = (_, { parity }) => Object.assign(present(parity.golden, "golden values"), { rounded: true });
const bottomRight = facts(({ image }) => (image.place = "bottom_right"));

test.each([
  ["bf16 weights, which lie in a file of their own", "bf16", {}, rounded],
  ["a build in half precision, which reads pixels", "f32", { compute: "f16" }, () => undefined],
] as const)(
  "%s: what they compute is shown and not judged, what they are given is judged",
  async (_, precision, options, spoil) => {
    const found = ok(await compared(spoil, "cpu", precision, options));
    const sizeOf = (name: Stage) => found.stages.find(({ stage }) => stage === name)?.size;
    expect([found.off, sizeOf("pictures")]).toEqual([undefined, 0]);
    expect(sizeOf("image tokens")).toBeGreaterThan(1e-4);
    const lines =
      /pictures +0\.0e\+0 of 1\.0e-4\n.* image tokens +\S+ not judged {2}case .*\n {2}not judged: the golden/s;
    expect(goldenLines(found)).toMatch(lines);
    const wrong: Spoil = (files, manifest) => [spoil(files, manifest), bottomRight(files, manifest)];
    expect(ok(await compared(wrong, "cpu", precision, options)).off?.stage).toBe("pictures");
  },
);

/** Every token of the prefix sees itself and those before it. */
const causal = causalPrefix(4, 2);

const template = (change: { text?: string; bins?: number }) =>
  facts(({ prompt }) => Object.assign(present(prompt?.parts[1], "the template"), change));

/** What is wrong, the stage that is named, and words about the place. */
const MISTAKES: readonly (readonly [what: string, spoil: Spoil, stage: Stage, where: RegExp])[] = [
  ["another place of the picture", bottomRight, "pictures", /view 0 \(top\), channel/],
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
  ["positions of rows one too high", numbered(1), "velocity", /^step 0/],
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
      "1 golden cases, 1 left out because their cameras or prompts do not fit the bundle; the largest",
    );
    const none = await compared(golden(({ cases }) => cases.forEach(blind)));
    expect((none as Problem).message).toContain("none of the 2 golden cases has pictures of exactly top, wrist");
  });

  test("a bundle whose prompts are too short for every case is refused: nothing was compared", async () => {
    const instruction = "fold the towel ".repeat(40);
    const long = golden((all) => Object.assign(all, { cases: all.cases.map((one) => ({ ...one, instruction })) }));
    const none = await compared(long);
    expect((none as Problem).message).toContain("the instruction of each of 2 golden cases is too long for the bundle");
  });

  test.each([
    ["noise that is missing", /"1\.noise"/g, '"x.noise"', "the golden values have no 1.noise; "],
    ["rows that are missing", /"1\.(rows|actions)"/g, '"x.$1"', "the golden values have no 1.rows; "],
    ["a layer too many", /"1\.past_k\.1"/g, '"1.past_k.2"', "the golden values 1.past_k.2; "],
    ["a step too many", /"0\.velocity\.3"/g, '"0.velocity.4"', "the golden values 0.velocity.4; "],
    ["a name of nothing", /"0\.tokens"/g, '"0.tokenz"', "the golden values 0.tokenz; "],
  ])("%s is named: it would not be compared", async (_, from, to, expected) => {
    const path = "parity/golden.safetensors";
    // Names of the same length: the header keeps its own.
    const renamed = (bytes: Uint8Array) =>
      Buffer.from(Buffer.from(bytes).toString("latin1").replace(from, to), "latin1");
    const found = await compared((files) => files.set(path, renamed(present(files.get(path), path))));
    expect(found).toMatchObject({ message: expect.stringContaining(expected) });
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
