/**
 * The file of a bundle's large weights, beside its graphs: one for all of them, a tensor that several graphs use lies in it once. An ONNX
 * file is one message of at most 2 GiB; this one has no bound, is written piece by piece and mapped, never read, when the bundle is loaded.
 */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { Values } from "./values.ts";

/** ONNX calls it external data; graphs name it without a folder. */
export const WEIGHT_FILE = "weights.bin";
/** Smaller tensors stay in the graph: biases, norms, shapes. */
const VALUES_BYTES_MIN = 4096;
/** Tensors begin at a page: a mapped one can be given back by itself, and any processor reads it aligned. */
const ALIGNMENT = 4096;

export interface Extent {
  /** Bytes from the begin of the file. */
  readonly offset: number;
}

/** Called while the file is written: bytes done, and in all. */
export type Progress = (done: number, total: number) => void;

/** What lies where. Placed first, written later: graphs are encoded between the two. */
export class WeightLayout {
  private readonly keyed = new Map<string, Extent>();
  private readonly placed: (Extent & { readonly values: Values })[] = [];
  private end = 0;

  /** The place of a graph's tensor; undefined for a small one, which stays in the graph. */
  place(values: Values): Extent | undefined {
    if (values.bytes < VALUES_BYTES_MIN) return undefined;
    const before = values.key === undefined ? undefined : this.keyed.get(values.key);
    if (before !== undefined) return before;
    const offset = Math.ceil(this.end / ALIGNMENT) * ALIGNMENT;
    const here = { offset, values };
    this.placed.push(here);
    if (values.key !== undefined) this.keyed.set(values.key, here);
    this.end = offset + values.bytes;
    return here;
  }

  /** Size of the file. */
  get bytes(): number {
    return this.end;
  }

  /** Writes the file, which must not exist, a piece at a time; its SHA-256 in lower-case hexadecimal. Throws as the file system does. */
  async write(path: string, progress: Progress = () => {}): Promise<string> {
    const hash = createHash("sha256");
    const file = await open(path, "wx");
    let done = 0;
    const append = async (bytes: Uint8Array) => {
      hash.update(bytes);
      for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
      done += bytes.length;
      progress(done, this.end);
    };
    try {
      for (const { offset, values } of this.placed) {
        if (offset > done) await append(new Uint8Array(offset - done));
        for (const piece of values.pieces()) await append(piece);
      }
    } finally {
      await file.close();
    }
    return hash.digest("hex");
  }
}
