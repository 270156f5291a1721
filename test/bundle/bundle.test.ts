/** Building bundles: same bytes each time; folders of bundles; descriptions. */
import { describe, expect, test } from "bun:test";
import { cp, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { buildBundle } from "../../src/bundle/build.ts";
import { describe as describeModel, REFERENCE_WARNING, show } from "../../src/bundle/describe.ts";
import { exportId } from "../../src/bundle/manifest.ts";
import { readBundles } from "../../src/bundle/read.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, emptyDir, MODEL_DIR } from "./built.ts";
import { copy, good, manifest } from "./damaged.ts";

describe("build", () => {
  test("two builds have equal bytes, file by file", async () => {
    const again = join(await emptyDir(), "again");
    const started = performance.now();
    await buildInto(again);
    expect(performance.now() - started).toBeLessThan(2000);
    for (const { path } of [...manifest.files, { path: "manifest.json" }]) {
      expect(sha256(await readFile(join(again, path)))).toBe(sha256(await readFile(join(good, path))));
    }
  });

  test("the export id covers graphs, tokenizer and norm statistics, and not the parity vectors", () => {
    const changed = (path: string) =>
      exportId(
        manifest.files.map((file) => (file.path === path ? { ...file, sha256: "0".repeat(64) } : file)),
        manifest,
      );
    for (const path of ["prefill.onnx", "denoise.onnx", "tokenizer.json", "norm.json"]) {
      expect(changed(path)).not.toBe(manifest.export_id);
    }
    expect(changed("parity/chunk.json")).toBe(manifest.export_id);
  });

  test("a bundle that stands in the way is replaced, anything else is not", async () => {
    const dir = await copy();
    await writeFile(join(dir, "stale.onnx"), "old");
    await buildInto(dir);
    expect(await readdir(dir)).not.toContain("stale.onnx");
    expect(await readdir(join(dir, ".."))).toEqual(["copy"]);
    const other = await emptyDir();
    await writeFile(join(other, "thesis.txt"), "years of work");
    const refused = await buildBundle(MODEL_DIR, other);
    expect(refused).toBeInstanceOf(Problem);
    expect(await readdir(other)).toEqual(["thesis.txt"]);
  });

  test("a model folder that is not there or wrong is told by name", async () => {
    const missing = await buildBundle("/nowhere", join(await emptyDir(), "out"));
    expect(missing).toMatchObject({ message: expect.stringContaining("/nowhere/model.json cannot be read") });
  });

  test("a frame whose name no manifest may list is told before anything is written", async () => {
    const model = join(await emptyDir(), "model");
    await cp(MODEL_DIR, model, { recursive: true });
    const vectors = join(model, "parity/chunk.json");
    await rename(join(model, "parity/top.jpg"), join(model, "parity/the top.jpg"));
    await writeFile(vectors, (await readFile(vectors, "utf8")).replaceAll('"top.jpg"', '"the top.jpg"'));
    const refused = await buildBundle(model, join(model, "out"));
    expect(refused).toMatchObject({ message: expect.stringContaining('/path: found "parity/the top.jpg", expected') });
    expect(await readdir(model)).not.toContain("out");
  });

  test("sizes that do not go together are told with path, found and expected", async () => {
    const cases: [(model: ModelFile) => void, string][] = [
      [(m) => (m.action.rows = 65), "/action/rows: found 65, expected"],
      [(m) => (m.image.width = 113), "/image/width: found 113, expected a multiple of the patch, 14"],
      [(m) => (m.image.tokens = 65), "/image/tokens: found 65, expected 64"],
      [
        (m) => {
          if ("language" in m.architecture) m.architecture.language.kv_heads = 3;
        },
        "/architecture/language/kv_heads: found 3, expected a divisor of 4",
      ],
      [(m) => (m.prompt.pad_id = 1), "/prompt/pad_id: found 1, expected 0"],
      [(m) => (m.cameras[2] = "top"), "/cameras/2: found top"],
    ];
    const model = join(await emptyDir(), "model");
    await cp(MODEL_DIR, model, { recursive: true });
    const facts = await readFile(join(model, "model.json"), "utf8");
    for (const [edit, expected] of cases) {
      const changed = JSON.parse(facts) as ModelFile;
      edit(changed);
      await writeFile(join(model, "model.json"), JSON.stringify(changed));
      const refused = await buildBundle(model, join(model, "out"));
      expect(refused).toMatchObject({ message: expect.stringContaining(expected) });
    }
    expect(await readdir(model)).not.toContain("out");
  });
});

describe("a folder of bundles", () => {
  test("missing, empty, twice the same id", async () => {
    expect(await readBundles("/nowhere")).toMatchObject({
      message: expect.stringContaining("/nowhere cannot be read"),
    });
    const dir = await emptyDir();
    expect(await readBundles(dir)).toMatchObject({ message: expect.stringContaining("holds no bundle") });
    await cp(good, join(dir, "one"), { recursive: true });
    const read = await readBundles(dir);
    expect(read).toHaveLength(1);
    await cp(good, join(dir, "two"), { recursive: true });
    expect(await readBundles(dir)).toMatchObject({
      message: expect.stringContaining("both hold vendorB/molmoact2:yam"),
    });
    await mkdir(join(dir, "three"));
    expect(await readBundles(dir)).toBeInstanceOf(Problem);
  });
});

describe("in words", () => {
  test("the description names what contract section 2 asks for, and that nothing was trained", () => {
    const text = describeModel(manifest);
    for (const part of [
      "vendorB/molmoact2:yam",
      "top, left, right",
      "1 on a session's first request, 1 on later ones",
      "joint_position: 12 values",
      "gripper_position: 2 values",
      "30 per chunk, dt 1/30 s",
      "action_dim 14, action_space joint_position",
      "left_joint_1 [rad]",
      REFERENCE_WARNING,
    ]) {
      expect(text).toContain(part);
    }
    expect(describeModel({ ...manifest, reference: false })).not.toContain("random");
  });

  test("the operator's page lists every file", () => {
    for (const { path } of manifest.files) expect(show(manifest)).toContain(path);
  });
});
