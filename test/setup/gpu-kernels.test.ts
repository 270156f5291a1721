/** The device code of the kernels, for every GPU that tendon knows. No GPU is asked; what they compute is tested on the CPU (native/tests/kernels). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { type TemporaryFolder, temporaryFolder } from "../store/temporary.ts";

const ROOT = resolve(import.meta.dir, "../..");
const SCRIPT = join(ROOT, "src/setup/gpu-kernels.mjs");

function compiler(word: string): string {
  const run = Bun.spawnSync(["node", join(ROOT, "src/setup/cuda-compiler.mjs"), word]);
  return run.stdout.toString().trim();
}

const absent = compiler("find") === "none" && testRequirement() === "none";
const title = absent
  ? "GPU kernels: skipped, no CUDA compiler; node src/setup/cuda-compiler.mjs install"
  : "GPU kernels";

let dir: TemporaryFolder;
beforeAll(async () => {
  dir = await temporaryFolder();
});
afterAll(async () => {
  await dir[Symbol.asyncDispose]();
});

/** Architectures of a fat binary: behind its head of 16 bytes one part after the other, each with its kind, its sizes and its architecture. */
function architecturesOf(file: Uint8Array) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const found = { code: new Set<number>(), ptx: new Set<number>() };
  for (let at = 16; at < file.length; ) {
    const kind = view.getUint16(at, true) === 1 ? found.ptx : found.code;
    kind.add(view.getUint32(at + 28, true));
    at += view.getUint32(at + 4, true) + Number(view.getBigUint64(at + 8, true));
  }
  const ordered = (numbers: ReadonlySet<number>) => [...numbers].sort((a, b) => a - b);
  return { code: ordered(found.code), ptx: ordered(found.ptx) };
}

/** The compiler takes its time once for each architecture. */
const COMPILE_MS_MAX = 300_000;

describe.skipIf(absent)(title, () => {
  test("compile without a warning for each architecture, and to PTX for those to come", compiled, COMPILE_MS_MAX);

  test("round each operation by itself, in full precision, as the CPU does", async () => {
    const out = join(dir.path, "kernels.ptx");
    const run = Bun.spawnSync(["node", SCRIPT, out], { stderr: "pipe" });
    expect(run.stderr.toString()).toBe("");
    const text = await Bun.file(out).text();
    expect(text).toMatch(/\bsqrt\.rn\.f64\b/);
    // Nor what a driver that compiles it may contract: an operation without its rounding.
    const loose = /\b(fma|mad)\.[a-z.]*f\d\d\b|\b(add|sub|mul)\.f\d\d\b|\.ftz\b|\.approx\b/g;
    expect(text.match(loose)).toBeNull();
  });
});

async function compiled(): Promise<void> {
  const out = join(dir.path, "made", "kernels.fatbin");
  const run = Bun.spawnSync(["node", SCRIPT, out], { stderr: "pipe" });
  expect(run.stderr.toString()).toBe("");
  expect(run.exitCode).toBe(0);
  expect(architecturesOf(await Bun.file(out).bytes())).toEqual({ code: [80, 86, 89, 90, 100, 120], ptx: [80, 120] });
}

test("without the CUDA compiler the script says how to get it, and makes nothing", async () => {
  const empty = join(dir.path, "empty");
  await mkdir(empty);
  const node = Bun.which("node") ?? "node";
  const out = join(empty, "kernels.fatbin");
  const run = Bun.spawnSync([node, SCRIPT, out], { env: { PATH: empty, HOME: empty }, stderr: "pipe" });
  expect(run.stderr.toString()).toBe(
    "GPU kernels: no CUDA compiler; get it from PyPI with: node src/setup/cuda-compiler.mjs install\n",
  );
  expect([run.exitCode, await Bun.file(out).exists()]).toEqual([1, false]);
});

test("the packages of the CUDA compiler are pinned", () => {
  const packages = compiler("packages").split(" ");
  expect(packages).toHaveLength(4);
  for (const one of packages) expect(one).toMatch(/^nvidia-[a-z-]+==13\.0\.\d+$/);
});
