/**
 * The CUDA compiler, from PyPI: `node src/setup/cuda-compiler.mjs install` gets it into the cache folder, once.
 *
 * Optional: only who makes the device code of `native/cuda/` needs it. Its version is pinned, because newer ones make PTX that the
 * drivers of CUDA 13.0 (580) refuse. One on PATH is taken if it is of that version.
 *
 * `install` needs python3 with venv, and a C++ compiler to work with; 101 MB of download, 253 MB on the disk. `packages` prints what it
 * installs, for a folder of one's own; `find` prints where nvcc is, or none.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const WHO = "CUDA compiler";
const VERSION = "13.0.88";
/** nvcc; what it calls to compile for a device; the headers of both. */
const PACKAGES = [
  `nvidia-cuda-nvcc==${VERSION}`,
  `nvidia-nvvm==${VERSION}`,
  `nvidia-cuda-crt==${VERSION}`,
  "nvidia-cuda-runtime==13.0.96",
];

/** Absolute path of nvcc; undefined: there is none of that version. */
export function cudaCompiler() {
  const library = join(cacheFolder(), "lib");
  const pythons = existsSync(library) ? readdirSync(library) : [];
  const own = pythons.map((python) => join(library, python, "site-packages/nvidia/cu13/bin"));
  return [...(process.env.PATH ?? "").split(delimiter), ...own]
    .map((folder) => join(folder, "nvcc"))
    .find((file) => existsSync(file) && versionOf(file).stdout?.includes(`V${VERSION}`));
}

/** What `TOOL --version` ends with; `error`: the tool is not installed. */
export function versionOf(tool) {
  return spawnSync(tool, ["--version"], { encoding: "utf8" });
}

function cacheFolder() {
  const set = process.env.XDG_CACHE_HOME;
  const cache = set?.startsWith("/") ? set : join(process.env.HOME || homedir(), ".cache");
  return join(cache, "tendon", `cuda-compiler-${VERSION}`);
}

function install() {
  if (cudaCompiler() !== undefined) return;
  const folder = cacheFolder();
  // A folder of an installation that was cut off has no compiler that answers: it begins anew.
  rmSync(folder, { recursive: true, force: true });
  // The folder above is that of the executable's files, which trusts none that others may write to (src/engine/payload.ts).
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  run(WHO, "python3", ["-m", "venv", folder]);
  run(WHO, join(folder, "bin/pip"), ["install", "--no-deps", "--disable-pip-version-check", ...PACKAGES]);
  if (cudaCompiler() === undefined) fail(WHO, `there is no nvcc ${VERSION} in ${folder} after the installation`);
}

/** Ends this process if the command fails; `who` begins what it says. */
export function run(who, command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ["ignore", 2, 2], ...options });
  if (status !== 0) fail(who, `${command} ${args.join(" ")} failed${error ? `: ${error.message}` : ""}`);
}

export function fail(who, message) {
  process.stderr.write(`${who}: ${message}\n`);
  process.exit(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const word = process.argv[2];
  if (word === "install") install();
  else if (word === "packages") process.stdout.write(`${PACKAGES.join(" ")}\n`);
  else if (word === "find") process.stdout.write(`${cudaCompiler() ?? "none"}\n`);
  else fail(WHO, "expected: install, packages or find");
}
