/** The reference bundle's chunks: against NumPy, against themselves, and what changes them. */
import { beforeAll, describe, expect, test } from "bun:test";
import { Tensor } from "onnxruntime-node";
import { present } from "../../src/std/assert.ts";
import { bundleOf, largestDifference, parityOf } from "./built.ts";
import { philox, philoxNormal } from "./philox.ts";
import { resizePillow } from "./pillow.ts";
import { type Feeds, type GoldenInput, Reference } from "./reference.ts";

let reference: Reference;
let given: GoldenInput;
let golden: number[][];
let fed: Feeds;
let rows: number[][];

beforeAll(async () => {
  const bundle = await bundleOf("molmoact2-yam");
  reference = await Reference.open(bundle);
  ({ given, actions: golden } = await parityOf(bundle));
  fed = await reference.prepare(given);
  rows = await chunk(fed);
});

async function chunk(changed: Feeds): Promise<number[][]> {
  return reference.rows(await reference.latents([changed]), given.state);
}

/** Largest change of an action by a changed observation. */
async function effect(change: Partial<GoldenInput>): Promise<number> {
  return largestDifference(rows, await chunk(await reference.prepare({ ...given, ...change })));
}

function report(name: string, value: number): void {
  process.stderr.write(`  ${name}: ${value.toExponential(2)}\n`);
}

describe("golden vector", () => {
  test("the chunk equals the one that NumPy computed, within the manifest's tolerance", () => {
    const difference = largestDifference(rows, golden);
    report("largest difference from NumPy", difference);
    expect(difference).toBeLessThan(reference.manifest.parity.tolerance);
    expect(reference.manifest.parity.tolerance).toBe(1e-4);
  });

  test("its prompt is shorter than the longest one, so masks matter", () => {
    expect(fed.tokenMask.includes(0)).toBe(true);
  });

  test("its rows move, and most values are inside their ranges and not at an end", () => {
    const columns = reference.manifest.action.columns;
    const inside = rows.flatMap((row) =>
      row.map((value, column) => {
        const { min, max } = present(columns[column], "column");
        return value > min && value < max;
      }),
    );
    expect(inside.filter(Boolean).length / inside.length).toBeGreaterThan(0.9);
  });
});

describe("each input changes the actions by more than 0.01 rad", () => {
  test("a region of one camera's picture, for each camera", async () => {
    const { width, height } = reference.manifest.image;
    for (const [camera, name] of reference.manifest.cameras.entries()) {
      const images = fed.images.slice();
      for (let y = 42; y < 56; y += 1) {
        const start = (camera * 3 * height + y) * width + 42;
        for (let x = start; x < start + 14; x += 1) images[x] = -present(images[x], "pixel");
      }
      const change = largestDifference(rows, await chunk({ ...fed, images }));
      report(`14 x 14 pixels of ${name}`, change);
      expect(change).toBeGreaterThan(1e-2);
    }
  });

  test("the order of the cameras", async () => {
    const change = await effect({ jpegs: given.jpegs.toReversed() });
    report("cameras reversed", change);
    expect(change).toBeGreaterThan(1e-2);
  });

  test("one word of the instruction", async () => {
    const change = await effect({ instruction: given.instruction.replace("red", "green") });
    report("one word", change);
    expect(change).toBeGreaterThan(1e-2);
  });

  test("each value of the state", async () => {
    for (const [index, { name, unit }] of reference.manifest.state.columns.entries()) {
      const change = await effect({ state: given.state.map((value, at) => (at === index ? value - 0.1 : value)) });
      report(`${name} 0.1 ${unit} less`, change);
      expect(change).toBeGreaterThan(1e-2);
    }
  });

  test("seed, step and both halves of a 53-bit seed", async () => {
    for (const change of [{ seed: given.seed + 1 }, { seed: given.seed - 2 ** 32 }, { step: given.step + 1 }]) {
      const size = await effect(change);
      report(JSON.stringify(change), size);
      expect(size).toBeGreaterThan(1e-2);
    }
  });
});

describe("masks and positions", () => {
  test("what stands in padding changes no bit", async () => {
    const tokens = fed.tokens.map((token, at) => (fed.tokenMask[at] === 1 ? token : BigInt(300 + at)));
    expect(tokens).not.toEqual(fed.tokens);
    expect(await chunk({ ...fed, tokens })).toEqual(rows);
  });

  test("less padding moves nothing but rounding", async () => {
    const { buckets = [], tokens_max } = reference.manifest.prompt;
    const used = fed.tokenMask.filter(Boolean).length;
    const shorter = buckets.filter((length) => length >= used);
    expect([fed.tokens.length, shorter.length > 0]).toEqual([tokens_max, true]);
    for (const length of shorter) {
      const cut = { ...fed, tokens: fed.tokens.slice(0, length), tokenMask: fed.tokenMask.slice(0, length) };
      const change = largestDifference(rows, await chunk(cut));
      report(`padded to ${length} tokens`, change);
      expect(change).toBeLessThan(reference.manifest.parity.tolerance);
    }
  });

  test("a padding token taken for a valid one shows", async () => {
    const tokenMask = fed.tokenMask.slice();
    tokenMask[tokenMask.indexOf(0)] = 1;
    const change = largestDifference(rows, await chunk({ ...fed, tokenMask }));
    report("one padding token valid", change);
    expect(change).toBeGreaterThan(1e-3);
  });

  test("a valid token taken for padding shows", async () => {
    const tokenMask = fed.tokenMask.slice();
    tokenMask[5] = 0;
    const change = largestDifference(rows, await chunk({ ...fed, tokenMask }));
    report("one token hidden", change);
    expect(change).toBeGreaterThan(1e-3);
  });

  test("positions count valid tokens only: a gap of padding inside the prompt moves nothing", async () => {
    // Token 0 stays, one padding token is put behind it, the others move one place to the right.
    const tokens = fed.tokens.slice();
    const tokenMask = fed.tokenMask.slice();
    tokens.set(fed.tokens.subarray(1, -1), 2);
    tokenMask.set(fed.tokenMask.subarray(1, -1), 2);
    tokenMask[1] = 0;
    const change = largestDifference(rows, await chunk({ ...fed, tokens, tokenMask }));
    report("gap in the prompt", change);
    // Sums run in another order, so bits may differ.
    expect(change).toBeLessThan(1e-4);
  });

  test("positions matter: two tokens that change places show", async () => {
    const tokens = fed.tokens.slice();
    [tokens[2], tokens[3]] = [present(tokens[3], "token"), present(tokens[2], "token")];
    const change = largestDifference(rows, await chunk({ ...fed, tokens }));
    report("two tokens swapped", change);
    expect(change).toBeGreaterThan(1e-3);
  });

  test("one more valid key behind the prefix, which also moves the action rows' positions, shows", async () => {
    const cache = await reference.prefill([fed]);
    const mask = present(cache.prefix_mask, "prefix_mask");
    const shifted = (mask.data as Uint8Array).slice();
    shifted[shifted.lastIndexOf(1) + 1] = 1;
    const moved = { ...cache, prefix_mask: new Tensor("bool", shifted, mask.dims) };
    const change = largestDifference(rows, reference.rows(await reference.latents([fed], moved), given.state));
    report("one more key", change);
    expect(change).toBeGreaterThan(1e-3);
  });

  test("a time of the flow is known by any rounding of it", async () => {
    const cache = await reference.prefill([fed]);
    const exact = await reference.velocity(fed.noise, 0.7, cache, 1);
    expect(await reference.velocity(fed.noise, 0.7 + 1e-6, cache, 1)).toEqual(exact);
    expect(await reference.velocity(fed.noise, 0.7 - 1e-6, cache, 1)).toEqual(exact);
  });

  test("the time matters", async () => {
    const cache = await reference.prefill([fed]);
    const one = await reference.velocity(fed.noise, 1, cache, 1);
    const later = await reference.velocity(fed.noise, 0.9, cache, 1);
    expect(Math.max(...one.map((value, at) => Math.abs(value - present(later[at], "value"))))).toBeGreaterThan(1e-2);
  });
});

describe("determinism", () => {
  test("a chunk has the same bits alone and in any place of a batch", async () => {
    const alone = await reference.latents([fed]);
    const other = await reference.prepare({
      ...given,
      instruction: "fold the towel",
      seed: 9,
      jpegs: given.jpegs.toReversed(),
    });
    for (const batch of [
      [fed, other],
      [other, fed, other],
      [other, other, other, fed],
    ]) {
      const place = batch.indexOf(fed) * alone.length;
      expect((await reference.latents(batch)).slice(place, place + alone.length)).toEqual(alone.slice());
    }
  });

  test("noise is Philox4x32-10: the published vectors; its values are standard normal", () => {
    expect(philox([0, 0, 0, 0], [0, 0])).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    expect(philox([0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff], [0xffffffff, 0xffffffff])).toEqual([
      0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd,
    ]);
    const noise = philoxNormal("0123456789abcdef".repeat(4), 2 ** 53 - 1, 2, 960);
    const mean = noise.reduce((sum, value) => sum + value, 0) / noise.length;
    const variance = noise.reduce((sum, value) => sum + value * value, 0) / noise.length;
    expect(Math.abs(mean)).toBeLessThan(0.1);
    expect(Math.abs(variance - 1)).toBeLessThan(0.1);
  });

  test("the resize keeps a flat picture flat and its size", () => {
    const flat = new Uint8Array(160 * 120 * 3).fill(77);
    const resized = resizePillow({ data: flat, width: 160, height: 120 }, { width: 112, height: 112 });
    expect(resized).toEqual(new Uint8Array(112 * 112 * 3).fill(77));
  });
});
