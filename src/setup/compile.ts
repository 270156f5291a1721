/**
 * Builds `dist/tendon`, one file: the program, the native libraries, the GPU kernels if they were made, and the reference bundles, each
 * packed with zstd.
 *
 * Run by `npm run build` after the set-up. The list of what is packed replaces `src/engine/embedded.ts`. A loader
 * that opens the two files of sharp inside the executable replaces sharp's own, which looks for them in node_modules.
 */
import { chmod, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import type { BunPlugin } from "bun";
import type { EmbeddedFile } from "../engine/embedded.ts";
import { PREBUILT } from "../engine/library.ts";
import { sha256 } from "../std/file-digest.ts";

const ROOT = resolve(import.meta.dir, "../..");
const PACKED = join(ROOT, "dist/packed");
const OUT = join(ROOT, "dist/tendon");
/** Device code; there where the set-up found a CUDA compiler. */
const KERNELS = join(ROOT, "dist/gpu/kernels.fatbin");
const ZSTD_LEVEL = 19;

async function main(): Promise<void> {
  // One after another, because two files with the same content share one asset.
  const files: EmbeddedFile[] = [];
  for (const [path, source] of await contents()) files.push(await pack(path, source));
  const making = `${OUT}.making`;
  const built = await Bun.build({
    // The threads are further entry points (src/service/store.ts, src/service/blobs.ts, src/store/sqlite/store.ts).
    entrypoints: ["main.ts", "service/writer.ts", "store/sqlite/checkpointer.ts", "service/blob-thread.ts"].map(
      (path) => join(ROOT, "src", path),
    ),
    target: "bun",
    minify: true,
    throw: false,
    // Parsed when it is built: a start then parses nothing, nor does the first call of a function.
    bytecode: true,
    format: "esm",
    compile: { outfile: making },
    plugins: [embedPlugin(files), sharpPlugin],
  });
  if (!built.success) {
    for (const message of built.logs) process.stderr.write(`${message}\n`);
    process.exit(1);
  }
  await chmod(making, 0o755);
  // Renamed, not overwritten: a running server keeps the old file.
  await rename(making, OUT);
  const has = files.some(({ path }) => path === "lib/kernels.fatbin") ? "with" : "without";
  process.stdout.write(`${OUT}: ${((await Bun.file(OUT).stat()).size / 2 ** 20).toFixed(1)} MiB, ${has} GPU kernels\n`);
}

/** Embedded path and source of every file. */
async function contents(): Promise<[path: string, source: string][]> {
  const libraries: [string, string][] = [];
  for (const { file, package: folder, sha256: pinned } of Object.values(PREBUILT)) {
    const source = join(ROOT, "node_modules", folder, file);
    const digest = sha256(await Bun.file(source).bytes());
    if (digest !== pinned) throw new Error(`${file} is not the one that tendon pins: sha256 ${digest}`);
    libraries.push([`lib/${file}`, source]);
  }
  const bundles: [string, string][] = [];
  for (const name of await readdir(join(ROOT, "models"))) {
    const folder = join(ROOT, "dist/models", name);
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const file = join(entry.parentPath, entry.name);
      if (entry.isFile()) bundles.push([join("models", name, relative(folder, file)), file]);
    }
  }
  const kernels: [string, string][] = (await Bun.file(KERNELS).exists()) ? [["lib/kernels.fatbin", KERNELS]] : [];
  const native = join(ROOT, "native/target/release/libtendon.so");
  return [["lib/libtendon.so", native], ...libraries, ...kernels, ...bundles.sort()];
}

/** Compresses a file, or finds it packed from an earlier build. */
async function pack(path: string, source: string): Promise<EmbeddedFile> {
  const bytes = await Bun.file(source).bytes();
  const digest = sha256(bytes);
  const asset = join(PACKED, `${digest}.zst`);
  if (!(await Bun.file(asset).exists())) {
    await mkdir(PACKED, { recursive: true });
    await Bun.write(`${asset}.making`, await Bun.zstdCompress(bytes, { level: ZSTD_LEVEL }));
    await rename(`${asset}.making`, asset);
  }
  return { path, size: bytes.length, sha256: digest, asset };
}

function embedPlugin(files: readonly EmbeddedFile[]): BunPlugin {
  const id = sha256(Buffer.from(files.map((file) => `${file.sha256} ${file.path}\n`).join("")));
  const imports = files.map(
    (file, at) => `import asset${at} from ${JSON.stringify(file.asset)} with { type: "file" };`,
  );
  const entries = files.map((file, at) => `{ ...${JSON.stringify({ ...file, asset: "" })}, asset: asset${at} }`);
  const text = `${imports.join("\n")}
export const EMBEDDED = [${entries.join(",\n")}];
export const EMBEDDED_ID = ${JSON.stringify(id)};
`;
  return {
    name: "embedded files",
    setup: (build) => {
      build.onLoad({ filter: /src\/engine\/embedded\.ts$/ }, () => ({ contents: text, loader: "ts" }));
    },
  };
}

/** Opens libvips before the addon, so that the loader finds it by name among the open libraries. */
const sharpPlugin: BunPlugin = {
  name: "sharp",
  setup: (build) => {
    build.onLoad({ filter: /sharp\/dist\/sharp\.mjs$/ }, async () => {
      const [addon] = await only(join(ROOT, "node_modules/@img/sharp-linux-x64/lib"), /\.node$/);
      const [vips] = await only(join(ROOT, "node_modules/@img/sharp-libvips-linux-x64/lib"), /^libvips-cpp\.so/);
      const contents = `import { dlopen } from "bun:ffi";
import vips from ${JSON.stringify(vips)} with { type: "file" };
dlopen(vips, { vips_version: { args: ["int"], returns: "int" } });
export default require(${JSON.stringify(addon)});
`;
      return { contents, loader: "js" };
    });
  },
};

async function only(folder: string, name: RegExp): Promise<string[]> {
  const found = (await readdir(folder)).filter((file) => name.test(file)).map((file) => join(folder, file));
  if (found.length !== 1) throw new Error(`${folder} holds ${found.length} files like ${name}, expected one`);
  return found;
}

await rm(`${OUT}.making`, { force: true });
await main();
