/** Changes of a copy of a checkpoint's folder. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TensorFile } from "../../../src/bundle/import/safetensors.ts";
import { ok } from "../../engine/opened.ts";
import type { Change } from "../spoiled-graph.ts";
import { type Made, writeTensors } from "./tensor-files.ts";

export type ChangeFolder = (dir: string) => Promise<void>;

const WEIGHTS = new Bun.Glob("model*.safetensors");

/** Writes the tensors of files anew, those of the weights unless others are named; one that `change` deletes is left out. */
export function tensors(change: (tensors: Record<string, Made>) => void, files = WEIGHTS): ChangeFolder {
  return async (dir) => {
    for (const name of files.scanSync(dir)) {
      const path = join(dir, name);
      const file = ok(TensorFile.open(path));
      const made = [...file.tensors].map(([name, stored]): [string, Made] => {
        return [name, { shape: stored.shape, dtype: stored.dtype, bytes: file.bytes(stored) }];
      });
      file.close();
      const changed = Object.fromEntries(made);
      change(changed);
      await writeTensors(path, changed);
    }
  };
}

/** Changes the float32 values of all tensors of the weights that are named so. */
export function values(names: RegExp, change: Change): ChangeFolder {
  return tensors((all) => {
    for (const [name, { shape, dtype, bytes }] of Object.entries(all).filter(([name]) => names.test(name))) {
      const floats =
        dtype === "BF16"
          ? new Float32Array(Uint32Array.from(new Uint16Array(bytes.slice().buffer), (half) => half << 16).buffer)
          : new Float32Array(bytes.slice().buffer);
      change(floats, shape);
      all[name] = { shape, bytes: new Uint8Array(floats.buffer) };
    }
  });
}

/** Changes a JSON file in place. */
export function json(name: string, change: (value: ReturnType<typeof JSON.parse>) => void): ChangeFolder {
  return async (dir) => {
    const value = JSON.parse(await readFile(join(dir, name), "utf8"));
    change(value);
    await writeFile(join(dir, name), JSON.stringify(value));
  };
}
