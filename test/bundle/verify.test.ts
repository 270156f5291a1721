/** Verifying bundles: every kind of damage is reported with its file. */
import { describe, expect, test } from "bun:test";
import { readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exportId, type Manifest } from "../../src/bundle/manifest.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { Problem } from "../../src/std/problem.ts";
import { copy, edited, good, manifest, messageOf } from "./damaged.ts";

describe("verify", () => {
  test("a good bundle has an absolute path for every listed file", async () => {
    const read = await readBundle(good);
    if (read instanceof Problem) throw new Error(read.message);
    expect([...read.paths.keys()]).toEqual(manifest.files.map(({ path }) => path));
    expect(read.paths.get("parity/top.jpg")).toBe(join(good, "parity/top.jpg"));
    expect(read.manifest).toEqual(manifest);
  });

  test("one changed byte is told with the file's name and what to do, in every file", async () => {
    for (const { path, size } of manifest.files) {
      const dir = await copy();
      const bytes = await readFile(join(dir, path));
      bytes[size >> 1] = (bytes[size >> 1] ?? 0) ^ 1;
      await writeFile(join(dir, path), bytes);
      const message = await messageOf(dir);
      expect(message).toContain(join(dir, path));
      expect(message).toContain("rebuild or fetch the bundle again");
    }
  });

  test("a missing and a truncated file", async () => {
    const missing = await copy();
    await rm(join(missing, "tokenizer.json"));
    expect(await messageOf(missing)).toContain("tokenizer.json cannot be read (no such file or folder)");
    const short = await copy();
    await truncate(join(short, "denoise.onnx"), 100);
    expect(await messageOf(short)).toContain("denoise.onnx has 100 bytes, expected");
  });

  test("a missing, truncated or wrong manifest", async () => {
    const dir = await copy();
    await truncate(join(dir, "manifest.json"), 300);
    expect(await messageOf(dir)).toContain("manifest.json is not JSON");
    await rm(join(dir, "manifest.json"));
    expect(await messageOf(dir)).toContain("manifest.json cannot be read");
    expect(await messageOf("/nowhere")).toContain("/nowhere cannot be read");
    expect(await edited(() => [])).toContain("/: found [], expected object");
  });

  test("an unknown field, a wrong type, a wrong choice: path, found, expected", async () => {
    expect(await edited((m) => ({ ...m, colour: "red" }))).toContain('/colour: found "red", expected no such field');
    expect(await edited((m) => ({ ...m, batch: "4" }))).toContain('/batch: found "4", expected integer');
    expect(await edited((m) => ({ ...m, licence: undefined }))).toContain("/licence: found nothing, expected");
    const resize = await edited((m) => ({ ...m, image: { ...m.image, resize: "squash" } }));
    expect(resize).toContain('/image/resize: found "squash", expected one of "pad", "stretch", "crop"');
  });

  test("norm statistics that are too short", async () => {
    const dir = await copy();
    const norm = JSON.parse(await readFile(join(dir, "norm.json"), "utf8")) as { action: { q99: number[] } };
    norm.action.q99.pop();
    const text = new TextEncoder().encode(JSON.stringify(norm));
    await writeFile(join(dir, "norm.json"), text);
    const files = manifest.files.map((file) =>
      file.path === "norm.json" ? { ...file, size: text.length, sha256: sha256(text) } : file,
    );
    const changed = { ...manifest, files, export_id: exportId(files, manifest) };
    await writeFile(join(dir, "manifest.json"), JSON.stringify(changed));
    expect(await messageOf(dir)).toContain("/action/q99: found 13 values, expected one for column 13 (right_gripper)");
  });

  test("a path or a link that leaves the folder", async () => {
    const first = (m: Manifest) => m.files[0] as { path: string };
    expect(
      await edited((m) => {
        first(m).path = "../denoise.onnx";
      }),
    ).toContain("expected a path inside the bundle");
    expect(
      await edited((m) => {
        first(m).path = "/etc/passwd";
      }),
    ).toContain("/files/0/path");
    const dir = await copy();
    await rm(join(dir, "denoise.onnx"));
    await symlink(join(good, "denoise.onnx"), join(dir, "denoise.onnx"));
    expect(await messageOf(dir)).toContain("leads out of the bundle");
  });
});
