/** Finds the native libraries and the bundles that ship with tendon: built from source, in the cache folder, or in memory. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { folders, ortFolders, testLibrary } from "../config/environment.ts";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { bindLibrary, type Calls } from "./binding.ts";
import { EMBEDDED, EMBEDDED_ID } from "./embedded.ts";
import { type OrtFolder, ortFolder } from "./ort-folder.ts";
import { unpack } from "./payload.ts";

/** The two libraries that come prebuilt from npm: one file of each package, pinned by digest. */
export const PREBUILT = {
  runtime: {
    version: "1.30.0",
    file: "libonnxruntime.so.1",
    package: "onnxruntime-node/bin/napi-v6/linux/x64",
    sha256: "ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
  },
  jpeg: {
    version: "3.1.3",
    file: "libturbojpeg.so.0",
    package: "@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64",
    sha256: "6facda09ef3e2308608f2b0214c040791e276305a48a27036362402f95fffcf5",
  },
} as const;

export interface Installation {
  /** `built`: from source. `cache`: unpacked from the executable. `memory`: memory files, without a usable cache folder. */
  readonly source: "built" | "cache" | "memory";
  /** The folder of the libraries; for `memory` why there is none. */
  readonly dir: string;
  /** Absolute paths. */
  readonly library: string;
  readonly runtime: string;
  /** The folder of `runtime`, if it is not the one that ships: it has the providers of GPUs, and no WebGPU. */
  readonly gpu: OrtFolder | undefined;
  readonly jpeg: string;
  /** Device code of our own kernels; undefined: it was built without. */
  readonly kernels: string | undefined;
  /** The absolute path of each file of a bundle. */
  readonly bundles: readonly ((file: string) => string)[];
}

let located: Promise<Installation | Problem> | undefined;

/** Finds, and in the executable unpacks, what ships with tendon; once per process. */
export function locateLibraries(): Promise<Installation | Problem> {
  located ??= locate();
  return located;
}

let opened: Promise<Calls | Problem> | undefined;

/** Its calls; opened once per process. */
export function openLibrary(): Promise<Calls | Problem> {
  opened ??= locateLibraries().then((found) => (found instanceof Problem ? found : bindLibrary(found.library)));
  return opened;
}

async function locate(): Promise<Installation | Problem> {
  const shipped = await (EMBEDDED.length > 0 ? unpacked() : built());
  if (shipped instanceof Problem) return shipped;
  const { named, kept } = ortFolders();
  const dir = named ?? (kept !== undefined && existsSync(kept) ? kept : undefined);
  if (dir === undefined) return shipped;
  const gpu = await ortFolder(dir, PREBUILT.runtime.version);
  return gpu instanceof Problem ? gpu : { ...shipped, runtime: gpu.runtime, gpu };
}

async function unpacked(): Promise<Installation | Problem> {
  try {
    const payload = await unpack(EMBEDDED, EMBEDDED_ID, folders().cache, "lib/libtendon.so");
    const at = (path: string) => present(payload.paths.get(path), `embedded ${path}`);
    const names = new Set([...payload.paths.keys()].flatMap((path) => /^models\/([^/]+)\//.exec(path)?.[1] ?? []));
    return {
      source: payload.source,
      dir: payload.note,
      library: at("lib/libtendon.so"),
      runtime: at(`lib/${PREBUILT.runtime.file}`),
      gpu: undefined,
      jpeg: at(`lib/${PREBUILT.jpeg.file}`),
      kernels: payload.paths.get("lib/kernels.fatbin"),
      bundles: [...names].map(
        (name) => (file) => payload.paths.get(`models/${name}/${file}`) ?? `/nonexistent/${file}`,
      ),
    };
  } catch (error) {
    return new Problem(`the executable cannot unpack its libraries: ${(error as Error).message}`);
  }
}

async function built(): Promise<Installation | Problem> {
  const root = resolve(import.meta.dir, "../..");
  const library = testLibrary() ?? join(root, "native/target/release/libtendon.so");
  const models = join(root, "dist/models");
  const packaged = (of: { package: string; file: string }) => join(root, "node_modules", of.package, of.file);
  const [runtime, jpeg] = [packaged(PREBUILT.runtime), packaged(PREBUILT.jpeg)];
  const missing = [library, runtime, jpeg, models].find((path) => !existsSync(path));
  if (missing !== undefined) return new Problem(`${missing} is missing; make it with: npm run setup`);
  const made = join(root, "dist/gpu/kernels.fatbin");
  const kernels = existsSync(made) ? made : undefined;
  const names = (await readdir(models, { withFileTypes: true }))
    .filter((entry) => entry.isDirectory() && !entry.name.includes(".building-"))
    .map((entry) => entry.name);
  const bundles = names.sort().map((name) => (file: string) => join(models, name, file));
  const dir = join(root, "native/target/release");
  return { source: "built", dir, library, runtime, gpu: undefined, jpeg, kernels, bundles };
}
