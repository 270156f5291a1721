/** The installed bundles: those that ship with tendon, or those in a folder that the user names. */
import { join } from "node:path";
import type { Bundle } from "../engine/engine.ts";
import { locateLibraries } from "../engine/library.ts";
import { Problem } from "../error/problem.ts";
import { Manifest } from "./manifest.ts";
import { bundleNames, readBundles, readShipped } from "./read.ts";
import { readJson } from "./schema.ts";

/** The bundles, every file verified. */
export function installedBundles(dir: string | undefined): Promise<Bundle[] | Problem> {
  return dir === undefined ? readShipped() : readBundles(dir);
}

/** Manifests alone, in the order of their ids: other files of a bundle may be gigabytes and are not read. */
export async function installedManifests(dir: string | undefined): Promise<Manifest[] | Problem> {
  const paths = await (dir === undefined ? shippedPaths() : pathsIn(dir));
  if (paths instanceof Problem) return paths;
  const manifests: Manifest[] = [];
  for (const path of paths) {
    const manifest = await readJson(path, Manifest, "rebuild or fetch the bundle again");
    if (manifest instanceof Problem) return manifest;
    manifests.push(manifest);
  }
  return manifests.sort((a, b) => a.id.localeCompare(b.id, "en"));
}

async function shippedPaths(): Promise<string[] | Problem> {
  const installed = await locateLibraries();
  return installed instanceof Problem ? installed : installed.bundles.map((place) => place.path("manifest.json"));
}

async function pathsIn(dir: string): Promise<string[] | Problem> {
  const names = await bundleNames(dir);
  if (names instanceof Problem) return names;
  const paths = names.map((name) => join(dir, name, "manifest.json"));
  // A folder without a manifest is no bundle yet.
  const present = await Promise.all(paths.map((path) => Bun.file(path).exists()));
  return paths.filter((_, index) => present[index]);
}

/** The manifest of one model, if its bundle is at hand. */
export async function installedManifest(id: string): Promise<Manifest | undefined> {
  const manifests = await installedManifests(undefined);
  return manifests instanceof Problem ? undefined : manifests.find((manifest) => manifest.id === id);
}
