/** Reads bundles and verifies all that can be verified without running a graph. */
import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { fileDigest } from "../std/file-digest.ts";
import { Problem } from "../std/problem.ts";
import { contradiction } from "./consistency.ts";
import { firstRepeated } from "./fault.ts";
import { goldenFault } from "./golden.ts";
import { exportId, Golden, Manifest, NormStats, Parity } from "./manifest.ts";
import { readJson, reason } from "./schema.ts";
import { statisticFault } from "./statistics.ts";

const ADVICE = "rebuild or fetch the bundle again";
const BUILD_ONE = "build one with: tendon bundle build MODEL_DIR --out DIR";

/** A verified bundle: its manifest and an absolute path for each file that the manifest lists. */
export interface Bundle {
  readonly manifest: Manifest;
  readonly paths: ReadonlyMap<string, string>;
}

/** The absolute path of each file of a bundle. It need not be one folder. */
export type BundlePlace = (file: string) => string;

/** The verified bundle in `dir`, or the first thing that is wrong with it. */
export async function readBundle(dir: string): Promise<Bundle | Problem> {
  const root = resolve(dir);
  return (await folderProblem(root)) ?? readPlace((file) => join(root, file), root);
}

/** The bundles at these places, verified. */
export function readPlaces(places: readonly BundlePlace[]): Promise<Bundle[] | Problem> {
  return eachOf(places, (place) => readPlace(place));
}

/** Reads all side by side; the first that is wrong, in their order. */
async function eachOf<Item, Read>(items: readonly Item[], read: (item: Item) => Promise<Read | Problem>) {
  const done: Read[] = [];
  for (const one of await Promise.all(items.map(read))) {
    if (one instanceof Problem) return one;
    done.push(one);
  }
  return done;
}

/** Manifests alone, in the order of their ids: other files of a bundle may be gigabytes and are not read. */
export async function readManifests(places: readonly BundlePlace[]): Promise<Manifest[] | Problem> {
  const manifests = await eachOf(places, (place) => readJson(place("manifest.json"), Manifest, ADVICE));
  return manifests instanceof Problem ? manifests : manifests.sort((a, b) => a.id.localeCompare(b.id, "en"));
}

/** Those of a folder of bundles that have a manifest; without one a folder is no bundle yet. */
export async function placesIn(dir: string): Promise<BundlePlace[] | Problem> {
  const names = await bundleNames(dir);
  if (names instanceof Problem) return names;
  const places = names.map((name) => (file: string) => join(dir, name, file));
  const present = await Promise.all(places.map((place) => Bun.file(place("manifest.json")).exists()));
  return places.filter((_, index) => present[index]);
}

/** `root`: the bundle's folder, which links must not lead out of; undefined for a bundle inside the executable. */
async function readPlace(place: BundlePlace, root?: string): Promise<Bundle | Problem> {
  const manifestPath = place("manifest.json");
  const manifest = await readJson(manifestPath, Manifest, ADVICE);
  if (manifest instanceof Problem) return manifest;
  const inside = contradiction(manifest);
  if (inside !== undefined) return new Problem(`${manifestPath}: ${inside}; ${ADVICE}`);

  const paths = new Map(manifest.files.map(({ path }) => [path, place(path)]));
  const wrong = await Promise.all(manifest.files.map((file) => fileProblem(place(file.path), file, root)));
  const first = wrong.find((problem) => problem !== undefined);
  if (first !== undefined) return first;
  const id = exportId(manifest.files, manifest);
  if (id !== manifest.export_id) {
    return new Problem(
      `${manifestPath}: /export_id: found ${manifest.export_id}, expected ${id} from the listed digests; ${ADVICE}`,
    );
  }
  return (await contentProblem(place, manifest)) ?? { manifest, paths };
}

/** Names of the bundle folders inside `dir`, in order. */
async function bundleNames(dir: string): Promise<string[] | Problem> {
  try {
    const entries = (await readdir(dir, { withFileTypes: true })).filter((entry) => !entry.isFile());
    // `.building-`: a bundle that is being written.
    const names = entries.map(({ name }) => name).filter((name) => !/^\.|\.building-/.test(name));
    return names.sort();
  } catch (error) {
    return new Problem(`the models folder ${dir} cannot be read (${reason(error)}); ${BUILD_ONE}`);
  }
}

/** Rows may differ by `within`, for a command that computes and measures. Where nobody has computed the rows, there is nothing to compare with. */
export function withTolerance({ manifest, paths }: Bundle, within: number | undefined): Bundle {
  if (within === undefined || manifest.parity.unproved) return { manifest, paths };
  return { paths, manifest: { ...manifest, parity: { ...manifest.parity, tolerance: within } } };
}

/** Every bundle inside `dir`, in the order of their folders' names. */
export async function readBundles(dir: string): Promise<Bundle[] | Problem> {
  const root = resolve(dir);
  const names = await bundleNames(root);
  if (names instanceof Problem) return names;
  if (names.length === 0) return new Problem(`the models folder ${root} holds no bundle; ${BUILD_ONE}`);
  const bundles = await eachOf(names, (name) => readBundle(join(root, name)));
  if (bundles instanceof Problem) return bundles;
  const ids = bundles.map(({ manifest }) => manifest.id);
  const twice = firstRepeated(ids);
  if (twice === undefined) return bundles;
  const id = ids[twice] ?? "";
  const [one, other] = [ids.indexOf(id), twice].map((at) => join(root, names[at] ?? ""));
  return new Problem(`${one} and ${other} both hold ${id}; remove one of them`);
}

async function folderProblem(root: string): Promise<Problem | undefined> {
  try {
    if ((await stat(root)).isDirectory()) return undefined;
    return new Problem(`${root} is a file, expected a bundle folder; name the folder that holds manifest.json`);
  } catch (error) {
    return new Problem(
      `the bundle ${root} cannot be read (${reason(error)}); name the folder that holds manifest.json`,
    );
  }
}

/** Presence, place, size and digest of one listed file. */
async function fileProblem(
  path: string,
  file: Manifest["files"][number],
  root: string | undefined,
): Promise<Problem | undefined> {
  try {
    // Links may point inside the bundle only.
    if (root !== undefined && !(await realpath(path)).startsWith((await realpath(root)) + sep)) {
      return new Problem(`${path} leads out of the bundle; ${ADVICE}`);
    }
    const found = await stat(path);
    if (!found.isFile()) return new Problem(`${path} is not a file; ${ADVICE}`);
    if (found.size !== file.size) {
      return new Problem(`${path} has ${found.size} bytes, expected ${file.size}; ${ADVICE}`);
    }
    const digest = await fileDigest(path);
    if (digest === file.sha256) return undefined;
    return new Problem(`${path} has been changed: its sha256 is ${digest}, expected ${file.sha256}; ${ADVICE}`);
  } catch (error) {
    return new Problem(`${path} cannot be read (${reason(error)}); ${ADVICE}`);
  }
}

/** Norm statistics for every column; parity vectors of the right shape, their frames listed. */
async function contentProblem(place: BundlePlace, manifest: Manifest): Promise<Problem | undefined> {
  const normPath = place(manifest.norm);
  const norm = await readJson(normPath, NormStats, ADVICE);
  if (norm instanceof Problem) return norm;
  const missing = statisticFault(manifest, norm);
  if (missing !== undefined) return new Problem(`${normPath}: ${missing}; ${ADVICE}`);

  const parityPath = place(manifest.parity.file);
  const parity = await readJson(parityPath, Parity, ADVICE);
  if (parity instanceof Problem) return parity;
  const wrong = parityFault(manifest, parity);
  if (wrong !== undefined) return new Problem(`${parityPath}: ${wrong}; ${ADVICE}`);
  const golden = await readGolden(place, manifest);
  return golden instanceof Problem ? golden : undefined;
}

/** The golden cases of a bundle that has some. */
export async function readGolden(place: BundlePlace, manifest: Manifest): Promise<Golden | undefined | Problem> {
  const { golden: names } = manifest.parity;
  if (names === undefined) return undefined;
  const path = place(names.cases);
  const golden = await readJson(path, Golden, ADVICE);
  if (golden instanceof Problem) return golden;
  const listed = manifest.files.some((file) => file.path === names.values);
  const fault = listed
    ? goldenFault(manifest, golden)
    : `found no ${names.values} in the manifest's files, expected it`;
  return fault === undefined ? golden : new Problem(`${path}: ${fault}; ${ADVICE}`);
}

function parityFault(
  { cameras, frames, state, action, parity: { file }, files }: Manifest,
  parity: Parity,
): string | undefined {
  const folder = file.slice(0, file.lastIndexOf("/") + 1);
  for (const [index, observation] of parity.observations.entries()) {
    const at = `/observations/${index}`;
    const unlisted = observation.frames.findIndex((name) => !files.some(({ path }) => path === folder + name));
    if (unlisted >= 0)
      return `${at}/frames/${unlisted}: found ${observation.frames[unlisted]}, expected a file listed in the manifest`;
    const perCamera = index === 0 ? frames.first : frames.later;
    const counts: [path: string, found: number, expected: number][] = [
      ["/frames", observation.frames.length, cameras.length * perCamera],
      ["/state", observation.state.length, state.columns.length],
      ["/actions", observation.actions.length, action.rows],
      ...(["prefix", "actions"] as const).flatMap((name) =>
        (observation[name] ?? []).map((row, number): [string, number, number] => [
          `/${name}/${number}`,
          row.length,
          action.columns.length,
        ]),
      ),
    ];
    const continued = observation.prefix?.length ?? 0;
    if (continued > (action.prefix ?? 0))
      return `${at}/prefix: found ${continued} rows, expected ${action.prefix ?? 0} at most`;
    const off = counts.find(([, found, expected]) => found !== expected);
    if (off) return `${at}${off[0]}: found ${off[1]} values, expected ${off[2]}`;
  }
  return undefined;
}
