/** The bundles of published sizes in bench/models: their facts hold at a size that a test can build, and nothing serves what nobody has proved. */
import { describe, expect, test } from "bun:test";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Architecture, ModelFile, WorldArchitecture } from "../../src/bundle/architecture.ts";
import { buildBundle } from "../../src/bundle/build.ts";
import { show } from "../../src/bundle/describe.ts";
import { buildGraphs } from "../../src/bundle/families.ts";
import { RandomWeights } from "../../src/bundle/random-weights.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { DEFAULT_BUILD, type Half } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { engineOfFile, Opened, ok, refusal } from "../engine/opened.ts";
import { emptyDir, MODEL_DIR } from "./built.ts";

const FULL = join(MODEL_DIR, "../../bench/models");
const NAMES = (await readdir(FULL)).sort();
const engine = await engineOfFile();

async function modelOf(name: string): Promise<ModelFile> {
  return JSON.parse(await readFile(join(FULL, name, "model.json"), "utf8"));
}

/** The model with all its facts, and an architecture that differs in sizes alone; of halves one whose rows nobody has computed. */
async function small(name: string, compute?: Half): Promise<Bundle> {
  const [folder, out] = [join(await emptyDir(), "model"), join(await emptyDir(), "bundle")];
  await cp(join(FULL, name), folder, { recursive: true });
  const model = await modelOf(name);
  const { architecture } = model;
  const shrunk = "transformer" in architecture ? smallWorld(architecture) : smallVla(architecture);
  const unproved = compute === undefined ? {} : { unproved: true };
  await writeFile(join(folder, "model.json"), JSON.stringify({ ...model, ...unproved, architecture: shrunk }));
  if (compute) {
    // Other vectors take the place of those for float32 where there are none: these rows are not compared.
    const parity = join(folder, "parity");
    const [vectors] = (await readdir(parity)).filter((file) => file.endsWith(".json"));
    await writeFile(join(parity, "chunk.json"), await readFile(join(parity, present(vectors, "vectors"))));
  }
  const precision = compute || model.unproved ? "f32" : "bf16";
  ok(await buildBundle(folder, out, precision, compute && { compute }));
  return ok(await readBundle(out));
}

function smallVla({ vision, language, expert, ...rest }: Architecture): Architecture {
  const { heads, kv_heads } = language;
  return {
    ...rest,
    vision: { ...vision, width: 32, layers: 1, heads: 2, mlp: 64 },
    language: { width: 32, layers: 2, heads: heads / kv_heads, kv_heads: 1, head_dim: 16, mlp: 64 },
    expert: { ...expert, width: 32, mlp: 64, time_width: 32 },
  };
}

function smallWorld({ transformer, ...rest }: WorldArchitecture): WorldArchitecture {
  const sizes = { width: 32, layers: 2, heads: 2, head_dim: 16, mlp: 64, time_width: 32, channels: 4 };
  return { ...rest, transformer: { ...transformer, ...sizes } };
}

/** Weights of all graphs, those that several use once, by the first word of their names. Nothing is drawn: values are made when they are written. */
function weightsOf({ architecture, ...facts }: ModelFile): Map<string, number> {
  const weights = new RandomWeights(architecture.seed, { ...DEFAULT_BUILD, precision: "bf16" });
  const graphs = buildGraphs(facts, architecture, 1000, weights);
  const counts = new Map<string, readonly [part: string, count: number]>();
  for (const graph of [graphs.prefill, graphs.denoise, graphs.extend].filter((graph) => graph !== undefined)) {
    for (const { name, dims, values } of graph.tensors) {
      const count = dims.reduce((size, dim) => size * dim, 1);
      counts.set(values.key ?? name, [name.split(".")[0] ?? "", count]);
    }
  }
  const parts = new Map<string, number>();
  for (const [part, count] of counts.values()) parts.set(part, (parts.get(part) ?? 0) + count);
  return parts;
}

const sum = (parts: Iterable<number>) => [...parts].reduce((all, one) => all + one, 0);

/**
 * What a README names, in its words, with the weights that its publisher gives it, and the share of them that is here: of the whole, or of
 * a part. Gemma and Qwen3 with their tables of tokens.
 */
const NAMED: Readonly<Record<string, readonly { words: string; part?: string; weights: number; share: number }[]>> = {
  "dreamzero-5b": [{ words: "Wan2.2 5B", weights: 5e9, share: 1 }],
  "gr00t-n1.7": [{ words: "where its card says 3 billion", weights: 3e9, share: 0.64 }],
  molmoact2: [
    { words: "Qwen3 of 4 billion weights", part: "language", weights: 4e9, share: 1 },
    { words: "SigLIP So400m", part: "vision", weights: 4e8, share: 1 },
  ],
  "pi0.5": [
    { words: "Gemma 2B", part: "language", weights: 2.5e9, share: 1 },
    { words: "SigLIP So400m/14", part: "vision", weights: 4e8, share: 1 },
  ],
};
const SHARE_OFF = 0.05;

describe("a bundle of full size", () => {
  test("has as many weights as its README tells, and of what this names as published the share that it tells", async () => {
    expect(NAMES).toEqual(Object.keys(NAMED));
    for (const name of NAMES) {
      const text = await readFile(join(FULL, name, "README.md"), "utf8");
      const parts = weightsOf(await modelOf(name));
      expect(text).toContain(`${(sum(parts.values()) / 1e9).toFixed(1)} billion weights`);
      for (const { words, part, weights, share } of NAMED[name] ?? []) {
        expect(text).toContain(words);
        const here = part === undefined ? sum(parts.values()) : (parts.get(part) ?? 0);
        expect([name, words, Math.abs(here / weights - share) < SHARE_OFF]).toEqual([name, words, true]);
      }
    }
  });

  test("is named by its README, which says that its numbers are random, and where nobody has computed its rows what differs", async () => {
    for (const name of NAMES) {
      const text = await readFile(join(FULL, name, "README.md"), "utf8");
      const { id, unproved } = await modelOf(name);
      expect(text).toContain(id);
      expect(text).toMatch(/random\s+numbers/);
      if (!unproved) continue;
      expect(text).toMatch(/nobody\s+has\s+computed\s+its\s+rows/);
      expect(text).toMatch(
        /^\| what \| published \| here, because of the family \|\n(\|[^|\n]+){3}\|\n(\|[^|\n]+){3}\|$/m,
      );
    }
  });
});

describe("a model of full size whose rows nobody has computed", () => {
  const slots = 1;

  for (const name of NAMES.filter((name) => name !== "pi0.5")) {
    test(`${name}: a small one of its shape is refused, and computes finite rows where it is only measured`, async () => {
      const bundle = await small(name);
      expect(bundle.manifest.parity).toMatchObject({ unproved: true });
      expect(show(bundle.manifest)).toContain("nobody has computed its rows");
      expect(await refusal(engine, bundle, { slots })).toContain("nobody has computed its rows");
      const { model } = await Opened.with(engine, bundle, { slots, unproved: true });
      // The episode ran through once: its rows are finite, and no zeros.
      expect(model.parity.every((difference) => Number.isFinite(difference) && difference > 0.01)).toBe(true);
      expect(model.parity).toHaveLength(bundle.manifest.memory ? 3 : 1);
      await model.unload();
    });
  }

  for (const name of NAMES) {
    test(`${name}: a small one of its shape that computes in f16 gives finite rows`, async () => {
      const half = await small(name, "f16");
      expect(half.manifest).toMatchObject({ compute: "f16", parity: { unproved: true } });
      const { model } = await Opened.with(engine, half, { slots, unproved: true });
      expect(model.parity.every((difference) => Number.isFinite(difference) && difference > 0.01)).toBe(true);
      await model.unload();
    });
  }

  for (const name of NAMES) {
    test(`${name}: one that computes in bf16 has the ports of one in f16 but for their type, and no CPU takes it`, async () => {
      const [f16, bf16] = [await small(name, "f16"), await small(name, "bf16")];
      const text = JSON.stringify(bf16.manifest.graphs);
      expect(text).toContain('"bf16"');
      expect(JSON.parse(text.replaceAll('"bf16"', '"f16"'))).toEqual(f16.manifest.graphs);
      const reason = await refusal(engine, bf16, { slots, unproved: true });
      expect(reason).toContain("its graphs compute in bf16");
    });
  }

  test("pi0.5, whose rows are computed, is not among them", async () => {
    expect((await small("pi0.5")).manifest.parity).toEqual({ file: "parity/chunk.json", tolerance: 1e-3 });
  });
});
