/** The weights of a checkpoint's folder: one safetensors file, or shards with an index. Every tensor is found by its name; values stay in the files. */

import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { Type } from "@sinclair/typebox";
import { fileDigest } from "../../std/file-digest.ts";
import { Problem } from "../../std/problem.ts";
import { readJson } from "../schema.ts";
import { hasFiner, hasNotFinite, isFloat, type Stored, TensorFile } from "./safetensors.ts";

const WHOLE = "model.safetensors";
const INDEX = "model.safetensors.index.json";
const ADVICE = "fetch the checkpoint again";
const PIECES_A_TURN = 64;
const ShardIndex = Type.Object({ weight_map: Type.Record(Type.String(), Type.String()) });

/** What reading every byte of a checkpoint tells. */
export interface Scan {
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
  /** Tensors of floats with a value that is infinite or not a number. */
  readonly notFinite: ReadonlySet<string>;
  /** Those with a value that no bfloat16 is. */
  readonly finer: ReadonlySet<string>;
}

export class Checkpoint {
  private constructor(
    private readonly files: readonly TensorFile[],
    readonly tensors: ReadonlyMap<string, Stored>,
    /** Path of the index of shards. */
    private readonly index?: string,
  ) {}

  /** Opens what is in `dir`. Its files stay open until `close`. */
  static async open(dir: string): Promise<Checkpoint | Problem> {
    if (!(await Bun.file(join(dir, INDEX)).exists())) {
      const file = TensorFile.open(join(dir, WHOLE));
      return file instanceof Problem ? file : new Checkpoint([file], file.tensors);
    }
    const index = await readJson(join(dir, INDEX), ShardIndex, ADVICE);
    if (index instanceof Problem) return index;
    if (await Bun.file(join(dir, WHOLE)).exists())
      return new Problem(`${dir} has both ${WHOLE} and ${INDEX}, expected one of them; ${ADVICE}`);
    const places = Object.entries(index.weight_map);
    const files = new Map<string, TensorFile>();
    const refused = (problem: Problem) => {
      for (const file of files.values()) file.close();
      return problem;
    };
    for (const name of new Set(Object.values(index.weight_map))) {
      if (basename(name) !== name || ["", ".", ".."].includes(name))
        return refused(new Problem(`${join(dir, INDEX)} names ${name}, expected a file beside it; ${ADVICE}`));
      const file = TensorFile.open(join(dir, name));
      if (file instanceof Problem) return refused(file);
      files.set(name, file);
    }
    const tensors = new Map<string, Stored>();
    for (const [name, place] of places) {
      const stored = files.get(place)?.tensors.get(name);
      if (stored === undefined)
        return refused(new Problem(`${join(dir, place)} has no ${name}, which ${INDEX} says; ${ADVICE}`));
      tensors.set(name, stored);
    }
    for (const [place, file] of files) {
      const other = [...file.tensors.values()].find((stored) => tensors.get(stored.name) !== stored);
      if (other !== undefined)
        return refused(new Problem(`${join(dir, place)} has ${other.name}, which ${INDEX} has not there; ${ADVICE}`));
    }
    return new Checkpoint([...files.values()], tensors, join(dir, INDEX));
  }

  /** Bytes of all files. */
  get bytes(): number {
    const sizes = this.files.map(({ head, tensors }) =>
      [...tensors.values()].reduce((sum, { bytes }) => sum + bytes, head),
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** Reads every byte once. `moved` is called with the bytes of each piece. Throws as the file system does. */
  async scan(moved: (bytes: number) => void): Promise<Scan> {
    const [notFinite, finer] = [new Set<string>(), new Set<string>()];
    let pieces = 0;
    const files: { path: string; sha256: string }[] = [];
    for (const file of this.files) {
      const hash = createHash("sha256");
      for (const { bytes, of } of file.pieces()) {
        hash.update(bytes);
        if (of !== undefined && isFloat(of)) {
          if (hasNotFinite(of, bytes)) notFinite.add(of.name);
          if (!finer.has(of.name) && hasFiner(of, bytes)) finer.add(of.name);
        }
        moved(bytes.length);
        pieces += 1;
        // A turn of the event loop now and then, for the line that shows how far this is.
        if (pieces % PIECES_A_TURN === 0) await Bun.sleep(0);
      }
      files.push({ path: basename(file.path), sha256: hash.digest("hex") });
    }
    if (this.index !== undefined) files.push({ path: INDEX, sha256: await fileDigest(this.index) });
    return { files, notFinite, finer };
  }

  close(): void {
    for (const file of this.files) file.close();
  }
}
