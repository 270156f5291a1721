/** The folders of the native engine, whose files import downwards. */
import { describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "..");

const rust: (readonly [string, string])[] = [];
for (const path of new Bun.Glob("native/src/**/*.rs").scanSync(ROOT))
  rust.push([path, await Bun.file(join(ROOT, path)).text()]);

/** Folders of native/src/ from top to bottom: a file uses its own folder and those below. `http` stands beside them, on `core` alone. */
const NATIVE = ["abi", "model", "flow", "episode", "ort", "gpu", "image", "bundle", "core"];

/** Folders that a Rust file uses against the direction; its tests may use any. */
function nativeUpward(path: string, source: string): string[] {
  const folder = path.slice("native/src/".length).split(/[/.]/)[0] ?? "";
  if (/(^|[_/])tests\.rs$/.test(path) || !(NATIVE.includes(folder) || folder === "http")) return [];
  const bare = (source.split("\n#[cfg(test)]\nmod tests {")[0] ?? "").replace(/\/\/.*$/gm, "");
  const below = folder === "http" ? ["core"] : NATIVE.slice(NATIVE.indexOf(folder) + 1);
  if (folder === "abi") below.push("http");
  return [...bare.matchAll(/\bcrate::(\w+)/g)]
    .map((match) => match[1] ?? "")
    .filter((other) => other !== folder && !below.includes(other))
    .map((other) => `${path} → ${other}`);
}

describe("native/src", () => {
  test("every file lies in a folder of the list", () => {
    const roots = new Set([...NATIVE, "http", "lib", "bin"]);
    expect(rust.map(([path]) => path).filter((path) => !roots.has(path.split(/[/.]/)[2] ?? ""))).toEqual([]);
  });

  test("folders import downwards", () => {
    expect(rust.flatMap(([path, source]) => nativeUpward(path, source))).toEqual([]);
  });

  test("the rule of directions can fail", () => {
    expect(nativeUpward("native/src/gpu/x.rs", "use crate::flow::Network;")).toEqual(["native/src/gpu/x.rs → flow"]);
    expect(nativeUpward("native/src/http/x.rs", "use crate::image::jpeg;")).toEqual(["native/src/http/x.rs → image"]);
  });
});
