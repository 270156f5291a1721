/**
 * Makes the device code of `native/cuda/`: `node src/setup/gpu-kernels.mjs [FILE]`, one fat binary for every GPU that tendon knows.
 * A FILE that ends in .ptx gets the text that shows what a device is told to do.
 * `npm run setup` runs it where the CUDA compiler is (cuda-compiler.mjs); a build without it has no own kernels, and says so.
 */
import { mkdirSync, renameSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cudaCompiler, fail, run } from "./cuda-compiler.mjs";

/** A100; RTX 30 and A10; RTX 40 and L4; H100 and H200; B200; RTX 50. */
const ARCHITECTURES = [80, 86, 89, 90, 100, 120];
/** What the driver compiles from, for GPUs between those and after them. */
const PTX = [80, 120];

const WHO = "GPU kernels";
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const out = resolve(process.argv[2] ?? join(root, "dist/gpu/kernels.fatbin"));

const nvcc = cudaCompiler();
if (nvcc === undefined) fail(WHO, "no CUDA compiler; get it from PyPI with: node src/setup/cuda-compiler.mjs install");
const code = [
  ...ARCHITECTURES.map((sm) => `-gencode=arch=compute_${sm},code=sm_${sm}`),
  ...PTX.map((sm) => `-gencode=arch=compute_${sm},code=compute_${sm}`),
];
// Without contraction: native/cuda/target.h.
const flags = ["-std=c++17", "-O3", "-fmad=false", "--Werror", "all-warnings", "-Xfatbin", "-compress-all"];
const shown = out.endsWith(".ptx");
const target = shown ? ["-ptx", "-arch=compute_80"] : ["-fatbin", ...code];
const making = `${out}.making`;
mkdirSync(dirname(out), { recursive: true });
const args = [...flags, ...target, join(root, "native/cuda/kernels.cu"), "-o", making];
run(WHO, nvcc, args);
renameSync(making, out);
