/** Safetensors files for tests. */
import { writeFile } from "node:fs/promises";
import { sizeOf } from "../../../src/bundle/weights.ts";

export interface Made {
  readonly shape: readonly number[];
  readonly dtype?: string;
  /** Little-endian values. */
  readonly bytes: Uint8Array;
}

export function f32(shape: readonly number[], value: (at: number) => number): Made {
  const values = Float32Array.from({ length: sizeOf(shape) }, (_, at) => value(at));
  return { shape, bytes: new Uint8Array(values.buffer) };
}

/** Writes tensors in the order of their names here. */
export async function writeTensors(path: string, tensors: Readonly<Record<string, Made>>): Promise<void> {
  let end = 0;
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, { shape, dtype = "F32", bytes }]) => {
      const begin = end;
      end += bytes.length;
      return [name, { dtype, shape, data_offsets: [begin, end] }];
    }),
  );
  const values = Object.values(tensors).map(({ bytes }) => bytes);
  await writeRaw(path, JSON.stringify({ ...header, __metadata__: { format: "pt" } }), Buffer.concat(values));
}

/** Writes a file with this header, whatever it says. */
export async function writeRaw(path: string, header: string, values: Uint8Array, length = BigInt(header.length)) {
  const start = new DataView(new ArrayBuffer(8));
  start.setBigUint64(0, length, true);
  await writeFile(path, Buffer.concat([new Uint8Array(start.buffer), Buffer.from(header), values]));
}
