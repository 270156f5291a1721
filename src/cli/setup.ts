/** `tendon setup gpu`: fetches the libraries of NVIDIA GPUs from PyPI, by name, version and digest. Without `--yes` it only says how. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { childEnvironment, keptOrtFolder } from "../config/environment.ts";
import { PREBUILT } from "../engine/library.ts";
import { ortFolder } from "../engine/ort-folder.ts";
import { Problem } from "../std/problem.ts";
import { dataFolder } from "./doctor/storage.ts";
import { type Command, type CommandLine, usageProblem } from "./frame/command.ts";
import { answer, printNote } from "./frame/print.ts";
import { CUDA_PACKAGES, type Package, TENSORRT_PACKAGE } from "./setup/packages.ts";
import { quoted, setupScript } from "./setup/script.ts";

export const setup: Command = {
  name: "setup",
  summary: "Fetch the libraries that models need on an NVIDIA GPU: setup gpu.",
  details: [
    "Without --yes it prints the commands and runs none. They need python3 with pip, and no root.",
    "A folder other than the default one is used when TENDON_ORT_DIR names it.",
  ],
  positionals: "gpu",
  flags: {
    yes: { about: "Run the commands." },
    tensorrt: {
      about: "TensorRT too: its package on PyPI is a stub that takes the libraries from NVIDIA's own index.",
    },
    dir: { value: "DIR", about: "The folder to make, or to make again (default: gpu in the cache folder)." },
    json: { about: "Print folder, packages and commands as one JSON object." },
  },
  async run(given) {
    if (given.word(0) !== "gpu") return usageProblem(setup, `expected gpu, found '${given.word(0)}'`);
    const dir = resolve(given.text("dir") ?? keptOrtFolder());
    const foreign = ["requirements.txt", "packages"].some((name) => !existsSync(join(dir, name)));
    if (existsSync(dir) && foreign) {
      return new Problem(`${dir} is there and was not made by this command; name another folder with --dir`);
    }
    return given.on("yes") ? await run(given, dir) : await show(given, dir);
  },
};

/** Both wheels and what is unpacked of them lie there at a time. */
const FREE_BYTES_MIN = 5 * 2 ** 30;

const packagesOf = (given: CommandLine): Package[] => [
  ...CUDA_PACKAGES,
  ...(given.on("tensorrt") ? [TENSORRT_PACKAGE] : []),
];

async function show(given: CommandLine, dir: string): Promise<number> {
  const packages = packagesOf(given);
  const megabytes = packages.reduce((sum, one) => sum + one.megabytes, 0);
  const commands = setupScript(dir, given.on("tensorrt"));
  const lines = [
    `# ONNX Runtime ${PREBUILT.runtime.version} for NVIDIA GPUs: ${(megabytes / 1000).toFixed(1)} GB to fetch, 2.5 GB on disk, in ${dir}.`,
    "# With --yes these commands are run; as a script: sh -eu",
    ...commands,
    `# Then: ${verify(dir)}`,
  ];
  return await answer(given, { dir, done: false, packages, commands }, lines.join("\n"));
}

async function run(given: CommandLine, dir: string): Promise<number | Problem> {
  const { state, freeBytes } = await dataFolder(dir);
  if (state === "not a folder" || state === "not writable")
    return new Problem(`${dir}: ${state}; name another with --dir`);
  if (freeBytes < FREE_BYTES_MIN) {
    const free = (freeBytes / 2 ** 30).toFixed(1);
    return new Problem(`${dir}: only ${free} GiB are free, 5 are needed; name a folder on another disk with --dir`);
  }
  if ((await exitOf(["python3", "-m", "pip", "--version"], "ignore")) !== 0) {
    return new Problem(
      "python3 with pip is not here; install it (Debian: apt install python3-pip), or run the commands that are printed without --yes on another machine and copy the folder",
    );
  }
  const [packages, commands] = [packagesOf(given), setupScript(dir, given.on("tensorrt"))];
  const names = packages.map(({ name, version }) => `${name} ${version}`).join(", ");
  await printNote(`fetching ${names}; this takes minutes`);
  const code = await exitOf(["sh", "-euc", commands.join("\n")], "inherit");
  if (code !== 0) return new Problem(`the commands ended with ${code}; ${dir} is as it was before`);
  const made = await ortFolder(dir, PREBUILT.runtime.version);
  if (made instanceof Problem) return made;
  const words = `ONNX Runtime ${PREBUILT.runtime.version} with ${made.providers.join(", ")} is in ${dir}\nnow: ${verify(dir)}`;
  return await answer(given, { dir, done: true, packages, commands }, words);
}

function verify(dir: string): string {
  return dir === keptOrtFolder() ? "tendon doctor" : `TENDON_ORT_DIR=${quoted(dir)} tendon doctor`;
}

/** 127 for a program that is not there. What the commands say goes to standard error. */
async function exitOf(command: readonly string[], output: "ignore" | "inherit"): Promise<number> {
  try {
    const [stdout, stderr] = output === "ignore" ? (["ignore", "ignore"] as const) : ([2, "inherit"] as const);
    return await Bun.spawn([...command], { env: childEnvironment({}), stdin: "ignore", stdout, stderr }).exited;
  } catch {
    return 127;
  }
}
