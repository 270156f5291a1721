/** Bundles whose large weights lie in a file of their own. */
import { beforeAll, describe, expect, test } from "bun:test";
import { cp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildBundle } from "../../src/bundle/build.ts";
import { decodeModel, encodeModel } from "../../src/bundle/onnx-schema.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { rounded } from "../../src/bundle/values.ts";
import { WEIGHT_FILE } from "../../src/bundle/weight-file.ts";
import { assert, present } from "../../src/std/assert.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, emptyDir, MODEL_DIR } from "./built.ts";
import { messageOf } from "./damaged.ts";
import type { FlowManifest } from "./flow-bundle.ts";

const PI05 = join(MODEL_DIR, "../pi0.5-yam");
const WORLD = join(MODEL_DIR, "../dreamzero-astra-yam");
const BFLOAT16 = 16;

let dir: string;
let manifest: FlowManifest;
let told: [done: number, total: number][];
beforeAll(async () => {
  dir = join(await emptyDir(), "bf16");
  told = [];
  manifest = await buildInto(dir, PI05, "bf16", { progress: (...now) => told.push(now) });
});

interface Tensor {
  readonly name: string;
  readonly dataType: number;
  readonly dims: readonly number[];
  readonly bytes: Uint8Array;
  /** In the weight file; undefined for one in the graph. */
  readonly offset: number | undefined;
}

async function tensorsOf(folder: string, file: string): Promise<Map<string, Tensor>> {
  const { graph } = decodeModel(await readFile(join(folder, file)), "external");
  const outside = await readFile(join(folder, WEIGHT_FILE)).catch(() => Buffer.alloc(0));
  const tensors = graph.initializer.map((tensor): Tensor => {
    const { name, dataType } = tensor;
    const head = { name, dataType, dims: tensor.dims.map(Number) };
    // A field that is not there is an empty list.
    if ("rawData" in tensor && tensor.rawData !== undefined)
      return { ...head, bytes: tensor.rawData, offset: undefined };
    assert("externalData" in tensor, "it lies elsewhere");
    const where = Object.fromEntries(tensor.externalData.map(({ key, value }) => [key, value]));
    const [offset, length] = [Number(where.offset), Number(where.length)];
    expect([where.location, tensor.dataLocation]).toEqual([WEIGHT_FILE, 1]);
    return { ...head, bytes: outside.subarray(offset, offset + length), offset };
  });
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

/** Bytes of the weight file as the manifest lists it. */
function listedBytes(): number {
  const listed = manifest.files.find(({ path }) => path === WEIGHT_FILE);
  return present(listed, "its listing").size;
}

function floats({ bytes }: Tensor): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}

describe("a bundle of bf16 weights", () => {
  test("says so, lists its weight file, is verified, and has the same bytes when it is built again", async () => {
    expect([manifest.weights, manifest.weight_files, manifest.parity.tolerance]).toEqual(["bf16", [WEIGHT_FILE], 1e-4]);
    expect(listedBytes()).toBe((await stat(join(dir, WEIGHT_FILE))).size);
    expect(await readBundle(dir)).not.toBeInstanceOf(Problem);
    const again = join(await emptyDir(), "again");
    expect(await buildInto(again, PI05, "bf16")).toEqual(manifest);
    for (const { path, sha256: digest } of manifest.files)
      expect(sha256(await readFile(join(again, path)))).toBe(digest);
  });

  test("tells while it is written how far it is, up to the end", () => {
    const total = listedBytes();
    expect(told.every(([, of]) => of === total)).toBe(true);
    expect(told.map(([done]) => done)).toEqual(told.map(([done]) => done).toSorted((one, other) => one - other));
    expect(told.at(-1)?.[0]).toBe(total);
  });

  test("has the matrices of its blocks and the table of tokens as rounded float32, side by side where they are used together", async () => {
    const f32 = join(await emptyDir(), "f32");
    await buildInto(f32, PI05);
    for (const file of ["prefill.onnx", "denoise.onnx"]) {
      const [halves, exact] = [await tensorsOf(dir, file), await tensorsOf(f32, file)];
      const seen = new Set<string>();
      for (const tensor of halves.values()) {
        const [scope, names = ""] = [tensor.name.split(".").slice(0, -2).join("."), tensor.name.split(".").at(-2)];
        if (tensor.dataType !== BFLOAT16) {
          expect(tensor.bytes).toEqual(present(exact.get(tensor.name), tensor.name).bytes);
          continue;
        }
        const whole = exact.get(tensor.name);
        const parts = whole
          ? [whole]
          : names.split("+").map((name) => present(exact.get(`${scope}.${name}.weight`), name));
        const columns = parts.map(({ dims }) => present(dims[1], "columns"));
        const width = columns.reduce((sum, count) => sum + count, 0);
        expect(tensor.dims).toEqual([present(parts[0]?.dims[0], "rows"), width]);
        const found: Uint16Array = new Uint16Array(new Uint8Array(tensor.bytes).buffer);
        let first = 0;
        for (const [at, part] of parts.entries()) {
          const count = present(columns[at], "columns");
          const own = Uint16Array.from(found).filter(
            (_, index) => index % width >= first && index % width < first + count,
          );
          expect([...own]).toEqual([...rounded(floats(part))]);
          first += count;
          seen.add(part.name);
        }
      }
      const matrix = (name: string) => /\.blocks\.\d+\..*\.weight$|embedding$/.test(name) && !name.includes("adaptive");
      expect([...seen].sort()).toEqual([...exact.keys()].filter(matrix).sort());
      expect(seen.size).toBeGreaterThan(20);
    }
  });

  test("keeps small tensors in the graphs, and large ones at pages of the file, none over another", async () => {
    const places: [number, number][] = [];
    for (const file of ["prefill.onnx", "denoise.onnx"]) {
      for (const { name, bytes, offset } of (await tensorsOf(dir, file)).values()) {
        expect([name, offset === undefined]).toEqual([name, bytes.length < 4096]);
        if (offset === undefined) continue;
        expect([name, offset % 4096]).toEqual([name, 0]);
        places.push([offset, offset + bytes.length]);
      }
    }
    places.sort(([one], [other]) => one - other);
    for (const [at, [from]] of places.entries()) expect(from).toBeGreaterThanOrEqual(places[at - 1]?.[1] ?? 0);
    expect(places.at(-1)?.[1]).toBe((await stat(join(dir, WEIGHT_FILE))).size);
  });
});

describe("weights that are too many for a graph's own file", () => {
  test("lie in a weight file with the same values, once where several graphs use them", async () => {
    const [inline, outside] = [join(await emptyDir(), "inline"), join(await emptyDir(), "outside")];
    const [one, other] = [
      await buildInto(inline, WORLD),
      await buildInto(outside, WORLD, "f32", { inlineBytesMax: 1 << 20 }),
    ];
    expect([one.weight_files, other.weight_files, other.weights]).toEqual([undefined, [WEIGHT_FILE], undefined]);
    const graphs = ["prefill.onnx", "extend.onnx", "denoise.onnx"];
    for (const file of graphs) {
      const [own, given] = [await tensorsOf(inline, file), await tensorsOf(outside, file)];
      expect([...given.keys()]).toEqual([...own.keys()]);
      for (const { name, dims, bytes } of own.values())
        expect([name, given.get(name)?.dims, sha256(given.get(name)?.bytes ?? "")]).toEqual([
          name,
          dims,
          sha256(bytes),
        ]);
    }
    // Prefill and extend read with the same transformer.
    const sizes = await Promise.all(graphs.map(async (file) => (await stat(join(inline, file))).size));
    const whole = sizes.reduce((sum, size) => sum + size, 0);
    expect((await stat(join(outside, WEIGHT_FILE))).size).toBeLessThan(whole / 2);
  });

  test("are no reason for one where they fit", async () => {
    const folder = join(await emptyDir(), "fits");
    const built = await buildBundle(MODEL_DIR, folder, "f32", { inlineBytesMax: 1 << 24 });
    expect(built).not.toHaveProperty("weight_files");
  });
});

describe("a weight file that is not as the manifest lists it", () => {
  const copyOf = async () => {
    const copy = join(await emptyDir(), "copy");
    await cp(dir, copy, { recursive: true });
    return copy;
  };

  test("is told when it is missing, cut, longer or changed", async () => {
    const size = (await stat(join(dir, WEIGHT_FILE))).size;
    for (const [damage, message] of [
      [async (path: string) => await rm(path), "cannot be read (no such file or folder)"],
      [async (path: string) => await truncate(path, size - 1), `has ${size - 1} bytes, expected ${size}`],
      [async (path: string) => await truncate(path, size + 1), `has ${size + 1} bytes, expected ${size}`],
      [
        async (path: string) => await writeFile(path, (await readFile(path)).fill(1, 77, 78)),
        "has been changed: its sha256 is",
      ],
    ] as const) {
      const copy = await copyOf();
      await damage(join(copy, WEIGHT_FILE));
      expect(await messageOf(copy)).toContain(`${join(copy, WEIGHT_FILE)} ${message}`);
    }
  });

  test("is part of the export: listed with another digest, the id is another", async () => {
    const copy = await copyOf();
    const bytes = (await readFile(join(copy, WEIGHT_FILE))).fill(1, 77, 78);
    await writeFile(join(copy, WEIGHT_FILE), bytes);
    const files = manifest.files.map((one) => (one.path === WEIGHT_FILE ? { ...one, sha256: sha256(bytes) } : one));
    await writeFile(join(copy, "manifest.json"), JSON.stringify({ ...manifest, files }));
    expect(await messageOf(copy)).toContain("/export_id: found");
  });

  test("is refused where it is not listed, or not beside the graphs", async () => {
    for (const [weight_files, message] of [
      [["other.bin"], "/weight_files/0: found other.bin, expected a path that is listed in /files"],
      [["parity/top.jpg"], "/weight_files/0: found parity/top.jpg, expected a file beside the graphs"],
      [[], "/weight_files: found []"],
    ] as const) {
      const copy = await copyOf();
      await writeFile(join(copy, "manifest.json"), JSON.stringify({ ...manifest, weight_files }));
      expect(await messageOf(copy)).toContain(message);
    }
  });
});

test("a graph that keeps tensors elsewhere is read and written as it was", async () => {
  const bytes = await readFile(join(dir, "denoise.onnx"));
  expect(sha256(encodeModel(decodeModel(bytes, "external")))).toBe(sha256(bytes));
});

test("a model without a tolerance for bf16 weights says what it lacks", async () => {
  expect(await buildBundle(MODEL_DIR, join(await emptyDir(), "out"), "bf16")).toMatchObject({
    message: expect.stringContaining("has no /bf16/tolerance; build this model with --weights f32"),
  });
});
