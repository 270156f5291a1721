/**
 * A folder with an ONNX Runtime that has the providers of GPUs: the main library and those of its providers, of one version, as a wheel
 * of onnxruntime-gpu has them. What these need in turn may lie there too, or where the loader looks by itself.
 */
import { open, readdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { Problem } from "../std/problem.ts";

const PROVIDER_FILES = {
  shared: "libonnxruntime_providers_shared.so",
  cuda: "libonnxruntime_providers_cuda.so",
  tensorrt: "libonnxruntime_providers_tensorrt.so",
} as const;

export interface OrtFolder {
  /** Absolute path. */
  readonly dir: string;
  /** Absolute path of the main library. */
  readonly runtime: string;
  /** Providers beside it. */
  readonly providers: readonly ("cuda" | "tensorrt")[];
}

const MAIN = /^libonnxruntime\.so\.1(\.\d+)*$/;

/** The folder if ONNX Runtime of `version` and a provider are in it; otherwise what is missing, and what to do. */
export async function ortFolder(dir: string, version: string): Promise<OrtFolder | Problem> {
  const refused = (what: string) =>
    new Problem(`${dir} cannot be used as TENDON_ORT_DIR: ${what}; see: tendon setup gpu`);
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => error);
  if (!Array.isArray(names)) return refused(names.code === "ENOENT" ? "there is no such folder" : names.message);
  const [name] = names.filter((name) => MAIN.test(name)).sort();
  if (name === undefined) return refused("it has no libonnxruntime.so.1");
  // One file often has two names.
  const mains = names.filter((name) => MAIN.test(name)).map((name) => realpath(join(dir, name)).catch(() => name));
  const [main = name, other] = [...new Set(await Promise.all(mains))].sort();
  if (other !== undefined) return refused(`it has two ONNX Runtimes, ${basename(main)} and ${basename(other)}`);
  const missing = [PROVIDER_FILES.shared, PROVIDER_FILES.cuda].find((file) => !names.includes(file));
  if (missing !== undefined) return refused(`it has no ${missing}`);
  // The library's symbols are of a version that is named after its own.
  const own = await found(main, (piece) => /\0VERS_(\d+\.\d+\.\d+)\0/.exec(piece.toString("latin1"))?.[1]);
  if (own !== version) return refused(`it has ONNX Runtime ${own ?? "of an unknown version"}, expected ${version}`);
  const isOfIt = (piece: Buffer) => piece.includes(`\0${version}\0`, 0, "latin1") || undefined;
  if (!(await found(join(dir, PROVIDER_FILES.cuda), isOfIt))) {
    return refused(`${PROVIDER_FILES.cuda} is not of ONNX Runtime ${version}, which ${basename(main)} is`);
  }
  const providers = (["cuda", "tensorrt"] as const).filter((name) => names.includes(PROVIDER_FILES[name]));
  // The library looks for its providers in the folder of this name.
  return { dir, runtime: join(dir, name), providers };
}

/** What is looked for is shorter: no piece's end may cut it. */
const OVERLAP = 64;
const PIECE = 8 * 2 ** 20;

/** What `look` finds in the pieces of a file, which overlap. A file that cannot be read has nothing. */
async function found<T>(path: string, look: (piece: Buffer) => T | undefined): Promise<T | undefined> {
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  );
  if (size === 0) return undefined;
  const file = await open(path);
  try {
    const buffer = Buffer.alloc(Math.min(size, PIECE));
    for (let at = 0; at < size; at += PIECE - OVERLAP) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
      const one = look(buffer.subarray(0, bytesRead));
      if (one !== undefined || bytesRead < PIECE) return one;
    }
    return undefined;
  } finally {
    await file.close();
  }
}
