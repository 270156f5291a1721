/** A commit as a program that can be started: a separate worktree, set up as a user would, kept for the next comparison. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Child, ChildOptions } from "../../src/measure/child.ts";
import { Problem } from "../../src/std/problem.ts";
import { textOf } from "../child.ts";

const ROOT = resolve(import.meta.dir, "../..");

export interface Tree {
  /** Short hash; with `+` for a checkout whose files differ from it. */
  readonly commit: string;
  /** Starts its service in a fresh process. */
  start(options: ChildOptions): Promise<Child | Problem>;
}

/** The commit that `revision` names. Builds it, which takes minutes, unless that was done before. */
export async function treeOf(revision: string): Promise<Tree | Problem> {
  const words = ["git", "rev-parse", "--verify", "--quiet", `${revision}^{commit}`];
  const hash = await textOf({ name: "git rev-parse", words, cwd: ROOT });
  if (hash instanceof Problem) return new Problem(`'${revision}' is no commit of this repository`);
  const commit = hash.slice(0, 7);
  const folder = join(ROOT, "dist/ab", commit);
  if (!existsSync(join(folder, "package.json"))) {
    // A folder that was removed by hand is still on git's list.
    const words = ["git", "worktree", "add", "--force", "--detach", folder, hash.trim()];
    const added = await textOf({ name: "git worktree add", words, cwd: ROOT });
    if (added instanceof Problem) return added;
  }
  const built = await textOf({ name: `setup of ${commit}`, words: ["node", "src/setup/setup.mjs"], cwd: folder });
  return built instanceof Problem ? built : await treeIn(folder, commit);
}

/** This checkout, with whatever is changed in it. */
export async function ownTree(commit: string): Promise<Tree> {
  return await treeIn(ROOT, commit);
}

/** The service is started by the commit's own code, because flags and configuration are those of the commit. */
async function treeIn(folder: string, commit: string): Promise<Tree> {
  const { startChild }: typeof import("../../src/measure/child.ts") = await import(
    join(folder, "src/measure/child.ts")
  );
  return {
    commit,
    start: async (options) => {
      const child = await startChild(options);
      // A problem of that commit is of another class than ours.
      return "service" in child ? child : new Problem(`${commit}: ${child.message}`);
    },
  };
}
