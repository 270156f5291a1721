/**
 * The peers of the proof `peers`, from PyPI. Each set has its own folder under dist/peers, so that one that cannot be installed
 * does not affect the others. Versions are exact, and the files name every package of a set, so that nothing is resolved anew.
 */
import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { printNote } from "../../src/cli/frame/print.ts";
import { Problem } from "../../src/std/problem.ts";
import { textOf } from "../child.ts";

const ROOT = resolve(import.meta.dir, "../..");

export const SET_NAMES = ["robots", "litellm", "tensorzero"] as const;
export type SetName = (typeof SET_NAMES)[number];

export function folderOf(name: SetName): string {
  return join(ROOT, "dist/peers", name);
}

/** The Python of a set. */
export function pythonOf(name: SetName): string {
  return join(folderOf(name), "bin/python");
}

function requirementsOf(name: SetName): string {
  return join(import.meta.dir, `${name}.txt`);
}

/** Written last, with the text of the requirements: a set is made anew when its versions change. */
function markerOf(name: SetName): string {
  return join(folderOf(name), "installed.txt");
}

export async function isInstalled(name: SetName): Promise<boolean> {
  const marker = Bun.file(markerOf(name));
  return (await marker.exists()) && (await marker.text()) === (await Bun.file(requirementsOf(name)).text());
}

/** The reason for each set that could not be installed. */
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
  // Wheels only: nothing of a package runs while it is installed.
  const flags = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"];
  for (const words of [
    ["python3", "-m", "venv", folder],
    [join(folder, "bin/pip"), "install", ...flags, "--requirement", requirementsOf(name)],
  ]) {
    const said = await textOf({ name: `${words[0]?.split("/").at(-1)} for ${name}`, words });
    if (said instanceof Problem) return said;
  }
  await Bun.write(markerOf(name), Bun.file(requirementsOf(name)));
  return undefined;
}
