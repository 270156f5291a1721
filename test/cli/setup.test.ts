/** `tendon setup gpu`: what it prints, and what `--yes` makes of it with a pip that fetches nothing. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CUDA_PACKAGES, packageOf, TENSORRT_PACKAGE } from "../../src/cli/setup/packages.ts";
import { PREBUILT } from "../../src/engine/library.ts";
import { Place } from "../program/program.ts";

const { version } = PREBUILT.runtime;

/** Writes what the wheels bring, where pip puts it; told so, it fails. */
const PIP = `#!/bin/sh
case "$*" in *--version*) exit 0;; esac
if [ -n "\${PIP_FAILS:-}" ]; then echo "hashes do not match" >&2; exit 1; fi
capi=packages/onnxruntime/capi cuda=packages/nvidia/cu13/lib
mkdir -p $capi $cuda
printf 'x\\000VERS_${version}\\000' > $capi/libonnxruntime.so.${version}
printf 'x\\000${version}\\000' > $capi/libonnxruntime_providers_cuda.so
printf x > $capi/libonnxruntime_providers_shared.so
printf x > $capi/onnxruntime_pybind11_state.so
printf x > $cuda/libcublas.so.13
echo "$@" > packages/arguments
`;

/** A place whose python3 is that pip. */
async function withPip(): Promise<{ place: Place; path: string }> {
  const place = await Place.make();
  const bin = place.path("bin");
  await mkdir(bin);
  await writeFile(join(bin, "python3"), PIP);
  await chmod(join(bin, "python3"), 0o755);
  return { place, path: `${bin}:${process.env.PATH}` };
}

test("every package is pinned: a version, a digest, and what it brings", () => {
  for (const { name, version, sha256, brings } of [...CUDA_PACKAGES, TENSORRT_PACKAGE]) {
    expect([name, /^\d+(\.\d+)+$/.test(version), /^[0-9a-f]{64}$/.test(sha256), brings.length > 0]).toEqual([
      name,
      true,
      true,
      true,
    ]);
  }
  expect(CUDA_PACKAGES[0]).toMatchObject({ name: "onnxruntime-gpu", version });
  expect(packageOf("libcudnn_ops.so.9")?.name).toBe("nvidia-cudnn-cu13");
  expect(packageOf("libc.so.6")).toBeUndefined();
});

test("without --yes the commands are printed and nothing is touched", async () => {
  await using place = await Place.make();
  const { code, stdout, stderr } = await place.run(["setup", "gpu"]);
  expect([code, stderr]).toEqual([0, ""]);
  for (const { name, version, sha256 } of CUDA_PACKAGES) {
    expect(stdout).toContain(`\n${name}==${version} --hash=sha256:${sha256}\n`);
  }
  expect(stdout).toContain("--require-hashes");
  expect(stdout).not.toContain(TENSORRT_PACKAGE.name);
  expect(stdout).toEndWith("# Then: tendon doctor\n");
  expect(existsSync(join(place.home, ".cache/tendon/gpu"))).toBe(false);
  const other = await place.run(["setup", "gpu", "--tensorrt", "--dir", place.path("libs"), "--json"]);
  const { dir, done, commands } = JSON.parse(other.stdout) as { dir: string; done: boolean; commands: string[] };
  expect([dir, done]).toEqual([place.path("libs"), false]);
  expect(commands.join("\n")).toContain(`${TENSORRT_PACKAGE.name}==${TENSORRT_PACKAGE.version} --hash=`);
});

test("--yes runs them: the folder has the libraries and no module of Python, and doctor finds it without a variable", async () => {
  const { place, path } = await withPip();
  await using _ = place;
  const { code, stdout } = await place.run(["setup", "gpu", "--yes"], { PATH: path });
  const dir = join(place.home, ".cache/tendon/gpu");
  expect([code, stdout]).toEqual([0, `ONNX Runtime ${version} with cuda is in ${dir}\nnow: tendon doctor\n`]);
  const names = await readdir(dir);
  expect(names.filter((name) => name.startsWith("lib")).sort()).toEqual([
    "libcublas.so.13",
    `libonnxruntime.so.${version}`,
    "libonnxruntime_providers_cuda.so",
    "libonnxruntime_providers_shared.so",
  ]);
  expect((await stat(dir)).mode & 0o077).toBe(0);
  expect(await readFile(join(dir, "packages/arguments"), "utf8")).toContain("--require-hashes");
  expect(await readFile(join(dir, "requirements.txt"), "utf8")).toContain(`onnxruntime-gpu==${version} --hash=sha256:`);
  // Again: made anew, in the place of the old one.
  await writeFile(join(dir, "old"), "");
  expect((await place.run(["setup", "gpu", "--yes"], { PATH: path })).code).toBe(0);
  expect(existsSync(join(dir, "old"))).toBe(false);
});

test("when pip refuses, the folder is as it was before", async () => {
  const { place, path } = await withPip();
  await using _ = place;
  const dir = place.path("it's a folder");
  const words = ["setup", "gpu", "--yes", "--dir", dir];
  expect((await place.run(words, { PATH: path })).stdout).toContain(
    `now: TENDON_ORT_DIR='${place.dir}/it'\\''s a folder' tendon doctor`,
  );
  await writeFile(join(dir, "old"), "");
  const failed = await place.run(words, { PATH: path, PIP_FAILS: "1" });
  expect([failed.code, failed.stdout]).toEqual([1, ""]);
  expect(failed.stderr).toContain("hashes do not match");
  expect(failed.stderr).toContain(`${dir} is as it was before`);
  expect(existsSync(join(dir, "old"))).toBe(true);
});

test("without Python it says what to install, and a folder of somebody else is not replaced", async () => {
  await using place = await Place.make();
  const none = await place.run(["setup", "gpu", "--yes"], { PATH: place.path("empty") });
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("apt install python3-pip")]);
  const foreign = await place.run(["setup", "gpu", "--yes", "--dir", place.dir]);
  expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining("was not made by this command")]);
  for (const words of [[], ["cpu"], ["gpu", "now"]]) expect((await place.run(["setup", ...words])).code).toBe(2);
});
