/** Building and verifying bundles: same bytes each time, and every kind of damage told by name. */
import { beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { buildBundle } from "../../src/bundle/build.ts";
import { describe as describeModel, REFERENCE_WARNING, show } from "../../src/bundle/describe.ts";
import { exportId, sha256 } from "../../src/bundle/digest.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { readBundle, readBundles } from "../../src/bundle/read.ts";
import { Problem } from "../../src/error/problem.ts";
import { present } from "../../src/std/assert.ts";
import { buildInto, emptyDir, MODEL_DIR } from "./built.ts";

let good: string;
let manifest: Manifest;

beforeAll(async () => {
  good = join(await emptyDir(), "good");
  manifest = await buildInto(good);
});

/** A copy of the good bundle that may be damaged. */
async function copy(): Promise<string> {
  const dir = join(await emptyDir(), "copy");
  await cp(good, dir, { recursive: true });
  return dir;
}

/** The message about a copy of the bundle whose manifest has been edited. */
async function edited(edit: (manifest: Manifest) => unknown): Promise<string> {
  const dir = await copy();
  const changed = structuredClone(manifest);
  const replaced = edit(changed);
  await writeFile(join(dir, "manifest.json"), JSON.stringify(replaced ?? changed));
  return await messageOf(dir);
}

async function messageOf(dir: string): Promise<string> {
  const read = await readBundle(dir);
  expect(read).toBeInstanceOf(Problem);
  return read instanceof Problem ? read.message : "";
}

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

  test("sizes that do not go together are told with path, found and expected", async () => {
    const cases: [(model: ModelFile) => void, string][] = [
      [
        (m) => {
          m.action.rows = 31;
        },
        "/action/rows: found 31, expected",
      ],
      [
        (m) => {
          m.image.width = 113;
        },
        "/image/width: found 113, expected a multiple of the patch, 14",
      ],
      [
        (m) => {
          m.image.tokens = 65;
        },
        "/image/tokens: found 65, expected 64",
      ],
      [
        (m) => {
          if ("language" in m.architecture) m.architecture.language.kv_heads = 3;
        },
        "/architecture/language/kv_heads: found 3, expected a divisor of 4",
      ],
      [
        (m) => {
          m.prompt.pad_id = 1;
        },
        "/prompt/pad_id: found 1, expected 0",
      ],
      [
        (m) => {
          m.cameras[2] = "top";
        },
        "/cameras/2: found top",
      ],
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

  test("shapes and names that contradict the facts", async () => {
    const cases: [(m: Manifest) => unknown, string][] = [
      [
        (m) => {
          m.action.rows = 29;
        },
        "/graphs/denoise/inputs/0/shape: found",
      ],
      [
        (m) => {
          m.cameras.push("back");
        },
        "/graphs/prefill/inputs/0/shape: found",
      ],
      [
        (m) => {
          m.cameras[1] = "top";
        },
        "/cameras/1: found top",
      ],
      [
        (m) => {
          m.image.tokens = 63;
        },
        "/graphs/prefill/outputs/0/shape",
      ],
      [
        (m) => {
          m.prompt.tokens_max = 16;
        },
        "/prompt/tokens_max: found 16, expected more than the 16",
      ],
      [
        (m) => {
          m.prompt.tokens_max = 95;
        },
        "/graphs/prefill/inputs/1/shape",
      ],
      [
        (m) => {
          m.frames.later = 4;
        },
        "/frames/first: found 1, expected 4",
      ],
      [
        (m) => {
          m.action.width = 13;
        },
        "/action/columns: found 14 columns, expected 13 at most",
      ],
      [
        (m) => {
          (m.action.columns[0] as { relative_to: number }).relative_to = 14;
        },
        "/action/columns/0/relative_to",
      ],
      [
        (m) => {
          (m.graphs.denoise.inputs[3] as { from: string }).from = "past_q_0";
        },
        "/graphs/denoise/inputs/3/from",
      ],
      [
        (m) => {
          m.graphs.prefill.outputs.pop();
        },
        "/graphs/denoise/inputs/10/from",
      ],
      [
        (m) => {
          m.tokenizer = "other.json";
        },
        "/tokenizer: found other.json",
      ],
      [
        (m) => {
          m.export_id = "0".repeat(64);
        },
        "/export_id: found 0000",
      ],
      [
        (m) => {
          m.state.columns.push({ ...present(m.state.columns[0], "column"), name: "again" });
        },
        "/state/columns/14",
      ],
      [
        (m) => {
          m.stateful = true;
        },
        "/stateful: found true, expected false",
      ],
      [
        (m) => {
          m.stateful = true;
          m.memory = { window: 4, tokens: 192, first: 1, later: 1 };
        },
        "/graphs/extend: found nothing, expected a graph",
      ],
      [
        (m) => {
          m.graphs.extend = m.graphs.prefill;
        },
        "/graphs/extend: found a graph, expected nothing",
      ],
      [
        (m) => {
          m.guidance = { scale: 2, apply: [] };
        },
        "/guidance: found",
      ],
      [
        (m) => {
          m.state.width = 13;
        },
        "/state/columns: found 14 columns, expected 13 at most",
      ],
      [
        (m) => {
          m.action.rotation6d = [9];
        },
        "/action/rotation6d/0: found 9, expected six columns of its own",
      ],
      [
        (m) => {
          m.action.rotation6d = [0, 5];
        },
        "/action/rotation6d/1: found 5, expected six columns of its own",
      ],
    ];
    for (const [edit, expected] of cases) {
      expect(
        await edited((m) => {
          edit(m);
        }),
      ).toContain(expected);
    }
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
