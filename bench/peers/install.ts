/** Installs the peers from the package registries: `bun bench/peers/install.ts`. What is there already is left alone. */
import { copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { print, printNote } from "../../src/cli/frame/print.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { textOf } from "../child.ts";
import {
  folderOf,
  isInstalled,
  markerOf,
  requirementsOf,
  SET_NAMES,
  SETS,
  type SetName,
  wantedOf,
} from "./installed.ts";

/** Why each set that could not be installed is missing. */
export async function installAll(): Promise<Map<SetName, Problem>> {
  const missing = new Map<SetName, Problem>();
  for (const name of SET_NAMES) {
    if (await isInstalled(name)) continue;
    await printNote(`installing ${name}`);
    const failed = await install(name);
    if (failed !== undefined) missing.set(name, failed);
  }
  return missing;
}

async function install(name: SetName): Promise<Problem | undefined> {
  const folder = folderOf(name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (SETS[name].by === "npm") await copyFile(requirementsOf(name), join(folder, "package.json"));
  const commands = SETS[name].by === "pip" ? pipCommands(name) : [npmCommand(name)];
  for (const words of commands) {
    const said = await textOf({ name: `${words[0]?.split("/").at(-1)} for ${name}`, words });
    if (said instanceof Problem) return said;
  }
  await Bun.write(markerOf(name), await wantedOf(name));
  return undefined;
}

/** Wheels only: nothing of a package runs while it is installed. */
function pipCommands(name: SetName): string[][] {
  const folder = folderOf(name);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"];
  return [
    ["python3", "-m", "venv", folder],
    [join(folder, "bin/pip"), "install", ...flags, "--requirement", requirementsOf(name)],
  ];
}

function npmCommand(name: SetName): string[] {
  return ["npm", "install", "--prefix", folderOf(name), "--ignore-scripts", "--no-audit", "--no-fund"];
}

if (import.meta.main) {
  const missing = await installAll();
  for (const name of SET_NAMES) await print(`${name}: ${missing.get(name)?.message ?? "installed"}`);
  process.exit(missing.size === 0 ? EXIT.done : EXIT.failed);
}
