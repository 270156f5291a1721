/** A folder of models with one bundle, for a service that is measured: it loads all that it finds. */
import { link, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { withTolerance } from "../../bundle/tolerance.ts";
import type { Bundle } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";

export interface Served {
  readonly dir: string;
  remove(): Promise<void>;
}

/** `within`: the rows may differ by this there, in place of the bundle's tolerance. */
export async function servedFolder(bundle: Bundle, within: number | undefined): Promise<Served | Problem> {
  const folder = dirname(present(bundle.paths.get(bundle.manifest.norm), "a file of the bundle"));
  // No link may lead out of a bundle. So one with another manifest has its files by a second name, which only their own disk can give.
  const parent = within === undefined ? tmpdir() : dirname(folder);
  let dir: string | undefined;
  const remove = async () => {
    if (dir !== undefined) await rm(dir, { recursive: true, force: true });
  };
  try {
    // A folder whose name begins with a dot is no bundle to whoever reads the one above.
    dir = await mkdtemp(join(parent, ".tendon-bench-"));
    const to = join(dir, basename(folder));
    if (within === undefined) await symlink(folder, to);
    else await named(withTolerance(bundle, within), to);
    return { dir, remove };
  } catch (error) {
    await remove();
    return new Problem(`no folder of models could be made in ${parent}: ${(error as Error).message}`);
  }
}

async function named({ manifest, paths }: Bundle, to: string): Promise<void> {
  for (const [path, from] of paths) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await link(from, join(to, path));
  }
  await Bun.write(join(to, "manifest.json"), JSON.stringify(manifest));
}
