/** The publishers' own code on this machine, and commands that are run with it. */
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { Problem } from "../../src/std/problem.ts";

/** Scripts that make checkpoints with the publishers' classes, and what they made. */
export const VECTORS = join(import.meta.dir, "../../test/vectors/publishers");
/** It stays for the next proof: to install it takes minutes. */
const ENVIRONMENTS = join(import.meta.dir, "../../dist/publishers");

/** Installs what is not there yet; the folder with an environment for each publisher. */
export async function publishers(): Promise<string | Problem> {
  const said = await output([join(import.meta.dir, "publishers.sh"), ENVIRONMENTS]);
  return said instanceof Problem ? said : ENVIRONMENTS;
}

/** What a command printed. */
export async function output(words: readonly string[]): Promise<string | Problem> {
  const child = Bun.spawn([...words], {
    env: childEnvironment({ HF_HUB_OFFLINE: "1" }),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [printed, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return code === 0 ? printed : new Problem(`${words.join(" ")}: ${said.trim()}`);
}

/** What a folder takes of the disk. */
export async function folderMib(folder: string): Promise<number> {
  const said = await output(["du", "-smL", folder]);
  return said instanceof Problem ? Number.NaN : Number.parseInt(said, 10);
}
