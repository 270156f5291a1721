/** Bundles of a folder, or those that ship with tendon. */
import type { Manifest } from "../bundle/manifest.ts";
import { type Bundle, type BundlePlace, placesIn, readBundles, readManifests, readPlaces } from "../bundle/read.ts";
import { locateLibraries } from "../engine/library.ts";
import { Problem } from "../std/problem.ts";

/** Every file is verified. */
export async function installedBundles(dir: string | undefined): Promise<Bundle[] | Problem> {
  if (dir !== undefined) return await readBundles(dir);
  const places = await shipped();
  return places instanceof Problem ? places : await readPlaces(places);
}

/** Manifests alone: other files of a bundle may be gigabytes and are not read. */
export async function installedManifests(dir: string | undefined): Promise<Manifest[] | Problem> {
  const places = await (dir === undefined ? shipped() : placesIn(dir));
  return places instanceof Problem ? places : await readManifests(places);
}

async function shipped(): Promise<readonly BundlePlace[] | Problem> {
  const installed = await locateLibraries();
  return installed instanceof Problem ? installed : installed.bundles;
}
