/**
 * Sets up a fresh machine: `node src/setup/setup.mjs`. Runs on Node, since Bun is not installed yet. Skips what is done.
 *
 * Needs Node 20 or newer, npm, a C compiler (Rust links with it) and a Rust toolchain; no root, no cmake, no Python.
 * What is missing is named with the command that gets it. Then: npm packages, the native library, the reference bundles; and, where the
 * CUDA compiler is (cuda-compiler.mjs), the kernels for GPUs.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cudaCompiler, run as runBy, versionOf } from "./cuda-compiler.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const bun = join(root, "node_modules/.bin/bun");

checkTools();
step("npm packages", ["package.json", "package-lock.json"], [bun], () =>
  run("npm", ["ci"], { ONNXRUNTIME_NODE_INSTALL: "skip" }),
);
step("native library", ["native"], [join(root, "native/target/release/libtendon.so")], () =>
  run("cargo", ["build", "--release", "--locked"], {}, join(root, "native")),
);
gpuKernels();
for (const name of folders("models")) {
  const out = join("dist/models", name);
  step(
    `bundle ${name}`,
    [join("models", name), "src/bundle", "src/std/random.ts"],
    [join(root, out, "manifest.json")],
    () => run(bun, ["src/main.ts", "bundle", "build", join("models", name), "--out", out]),
  );
}

/** Names all missing tools at once. */
function checkTools() {
  const missing = [];
  const [major] = process.versions.node.split(".").map(Number);
  if (major < 20) missing.push(`Node ${process.versions.node} is too old, 20 or newer is needed: https://nodejs.org`);
  if (process.platform !== "linux" || process.arch !== "x64") {
    missing.push(
      `this is ${process.platform} ${process.arch}; tendon runs on Linux x86-64 (AVX2, glibc 2.28 or newer)`,
    );
  }
  if (versionOf("cc").status !== 0)
    missing.push("no C compiler (cc): apt-get install gcc libc6-dev, or your system's equivalent");
  const needed = /^rust-version = "([\d.]+)"/m.exec(readFileSync(join(root, "native/Cargo.toml"), "utf8"))?.[1];
  const rust = versionOf("cargo");
  const advice = "curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y   (or: rustup update)";
  if (rust.error) missing.push(`no Rust toolchain (cargo), ${needed} or newer is needed: ${advice}`);
  else if (rust.status !== 0) {
    const [reason] = rust.stderr.trim().split("\n");
    missing.push(`cargo is there but does not answer: ${reason}; with rustup: rustup default stable`);
  } else if (older(/(\d+\.\d+\.\d+)/.exec(rust.stdout)?.[1] ?? "0", needed)) {
    missing.push(`${rust.stdout.trim()} is too old, ${needed} or newer is needed: ${advice}`);
  }
  if (missing.length === 0) return;
  process.stderr.write(`tendon cannot be built here:\n${missing.map((line) => `  - ${line}\n`).join("")}`);
  process.exit(1);
}

function older(version, needed) {
  const [a, b] = [version, needed].map((text) => text.split(".").map(Number));
  return a[0] !== b[0] ? a[0] < b[0] : a[1] < b[1];
}

/** Optional: only where the CUDA compiler is. Device code of other sources is removed, so that no build takes it. */
function gpuKernels() {
  const out = join(root, "dist/gpu/kernels.fatbin");
  const files = ["native/cuda", "src/setup/gpu-kernels.mjs", "src/setup/cuda-compiler.mjs"];
  const make = () => run(process.execPath, ["src/setup/gpu-kernels.mjs"]);
  if (cudaCompiler() !== undefined) step("GPU kernels", files, [out], make);
  else if (!isDone("GPU kernels", digestOf(files), [out])) rmSync(out, { force: true });
}

/** Runs `work` unless its inputs are the same as last time and its outputs are there. */
function step(name, inputs, outputs, work) {
  const digest = digestOf(inputs);
  if (isDone(name, digest, outputs)) return;
  process.stderr.write(`setup: ${name}\n`);
  work();
  mkdirSync(dirname(stampOf(name)), { recursive: true });
  writeFileSync(stampOf(name), digest);
}

function isDone(name, digest, outputs) {
  const stamp = stampOf(name);
  return existsSync(stamp) && readFileSync(stamp, "utf8") === digest && outputs.every((path) => existsSync(path));
}

function stampOf(name) {
  return join(root, "dist/.setup", name.replaceAll(" ", "-"));
}

function digestOf(inputs) {
  const hash = createHash("sha256");
  for (const file of inputs.flatMap((input) => filesBelow(join(root, input)))) {
    hash.update(`${relative(root, file)}\0`).update(readFileSync(file));
  }
  return hash.digest("hex");
}

function filesBelow(path) {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).sort();
  return names
    .filter((name) => name !== "target" && name !== "node_modules")
    .flatMap((name) => filesBelow(join(path, name)));
}

function folders(path) {
  return readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}

function run(command, args, env = {}, cwd = root) {
  runBy("setup", command, args, { cwd, env: { ...process.env, ...env } });
}
