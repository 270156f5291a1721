/** A folder of ONNX Runtime with GPU providers is of one version and whole, or its refusal names what is missing. Small fakes. */
import { expect, test } from "bun:test";
import { rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PREBUILT } from "../../src/engine/library.ts";
import { ortFolder } from "../../src/engine/ort-folder.ts";
import { Problem } from "../../src/std/problem.ts";
import { Place } from "../program/program.ts";
import { temporaryFolder } from "../store/temporary.ts";

const VERSION = "1.30.0";
const [CUDA, SHARED, TENSORRT] = ["cuda", "shared", "tensorrt"].map(
  (name) => `libonnxruntime_providers_${name}.so`,
) as [string, string, string];

const main = (version: string) => `\x7fELF ${"x".repeat(100)}\0VERS_${version}\0 more`;
const cuda = (version: string) => `\x7fELF ${"x".repeat(100)}\0${version}\0 more`;

/** The files that the wheel of onnxruntime-gpu has. */
async function fill(dir: string, version = VERSION): Promise<void> {
  await writeFile(join(dir, `libonnxruntime.so.${version}`), main(version));
  await writeFile(join(dir, SHARED), "shared");
  await writeFile(join(dir, CUDA), cuda(version));
  await writeFile(join(dir, TENSORRT), "tensorrt");
}

async function refusal(dir: string): Promise<string> {
  const found = await ortFolder(dir, VERSION);
  return found instanceof Problem ? found.message : "accepted";
}

test("the four files of one wheel are accepted, and a second name of the main library is no second library", async () => {
  await using dir = await temporaryFolder();
  await fill(dir.path);
  const whole = { dir: dir.path, providers: ["cuda", "tensorrt"] };
  const named = join(dir.path, `libonnxruntime.so.${VERSION}`);
  expect(await ortFolder(dir.path, VERSION)).toEqual({ ...whole, runtime: named } as never);
  await symlink(named, join(dir.path, "libonnxruntime.so.1"));
  expect(await ortFolder(dir.path, VERSION)).toMatchObject({ runtime: join(dir.path, "libonnxruntime.so.1") });
  await rm(join(dir.path, TENSORRT));
  expect(await ortFolder(dir.path, VERSION)).toMatchObject({ providers: ["cuda"] });
});

test("links into another folder are opened by their names here, beside their providers", async () => {
  await using wheel = await temporaryFolder();
  await using dir = await temporaryFolder();
  await fill(wheel.path);
  for (const name of [`libonnxruntime.so.${VERSION}`, SHARED, CUDA])
    await symlink(join(wheel.path, name), join(dir.path, name));
  expect(await ortFolder(dir.path, VERSION)).toMatchObject({ runtime: join(dir.path, `libonnxruntime.so.${VERSION}`) });
});

test("each missing file is named, and what to do", async () => {
  await using dir = await temporaryFolder();
  expect(await refusal(join(dir.path, "nowhere"))).toContain("there is no such folder; see: tendon setup gpu");
  expect(await refusal(dir.path)).toContain("it has no libonnxruntime.so.1");
  for (const name of [SHARED, CUDA]) {
    await fill(dir.path);
    await rm(join(dir.path, name));
    expect(await refusal(dir.path)).toContain(`it has no ${name}`);
  }
});

test("files of two versions are refused, and another version than the product's", async () => {
  await using dir = await temporaryFolder();
  await fill(dir.path);
  await writeFile(join(dir.path, "libonnxruntime.so.1.31.1"), main("1.31.1"));
  expect(await refusal(dir.path)).toContain("two ONNX Runtimes, libonnxruntime.so.1.30.0 and libonnxruntime.so.1.31.1");
  await rm(join(dir.path, `libonnxruntime.so.${VERSION}`));
  expect(await refusal(dir.path)).toContain("it has ONNX Runtime 1.31.1, expected 1.30.0");
  await rename(join(dir.path, "libonnxruntime.so.1.31.1"), join(dir.path, "libonnxruntime.so.1"));
  await writeFile(join(dir.path, "libonnxruntime.so.1"), "no version in it");
  expect(await refusal(dir.path)).toContain("of an unknown version");
  await writeFile(join(dir.path, "libonnxruntime.so.1"), main(VERSION));
  await writeFile(join(dir.path, CUDA), cuda("1.31.1"));
  expect(await refusal(dir.path)).toContain(`${CUDA} is not of ONNX Runtime 1.30.0`);
});

test("a version is found wherever it stands in a large file", async () => {
  await using dir = await temporaryFolder();
  await fill(dir.path);
  // Across the end of a piece, and in a later one.
  for (const before of [8 * 2 ** 20 - 7, 20 * 2 ** 20]) {
    await writeFile(join(dir.path, CUDA), `${"x".repeat(before)}${cuda(VERSION)}`);
    expect(await refusal(dir.path)).toBe("accepted");
  }
});

test("the version of the product's own library is read from it", async () => {
  await using dir = await temporaryFolder();
  const { package: folder, file, version } = PREBUILT.runtime;
  await fill(dir.path, version);
  await rm(join(dir.path, `libonnxruntime.so.${version}`));
  await symlink(join(import.meta.dir, "../../node_modules", folder, file), join(dir.path, file));
  expect(await refusal(dir.path)).toBe("accepted");
});

test("a folder that is named and cannot be used stops a start, one that setup made and is damaged as well; none is no folder", async () => {
  await using place = await Place.make();
  const dir = place.path("ort");
  const said = async (env: Record<string, string>) => {
    const { code, stdout } = await place.run(["doctor", "--json"], env);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; found: string }[] };
    return { code, check: checks.find(({ name }) => name === "libraries") };
  };
  const named = await said({ TENDON_ORT_DIR: dir });
  expect([named.code, named.check?.ok, named.check?.found]).toEqual([
    1,
    false,
    expect.stringContaining("there is no such folder"),
  ]);
  const kept = join(place.home, ".cache/tendon/gpu");
  await Bun.write(join(kept, "libonnxruntime.so.1"), main("1.31.1"));
  await Bun.write(join(kept, SHARED), "");
  await Bun.write(join(kept, CUDA), cuda("1.31.1"));
  expect((await said({})).check).toMatchObject({
    ok: false,
    found: expect.stringContaining("1.31.1, expected 1.30.0"),
  });
  expect((await said({ TENDON_ORT_DIR: "none" })).check).toMatchObject({ ok: true });
}, 60_000);
