/** Writes a model file in llama.cpp's format, GGUF version 3: little-endian, keys with values, then float32 tensors. */

const VERSION = 3;
/** The alignment of each tensor's data, bytes. */
const ALIGNMENT = 32;

/** Type numbers of the format, for the kinds of value used here. */
const TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
const F32_TENSOR = 0;

export type Value =
  | { readonly kind: "u32" | "i32" | "f32"; readonly value: number }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "strings"; readonly value: readonly string[] }
  | { readonly kind: "i32s"; readonly value: readonly number[] };

export interface Tensor {
  readonly name: string;
  /** A matrix lies row after row; a vector has one row. */
  readonly columns: number;
  readonly data: Float32Array;
}

export function gguf(values: Readonly<Record<string, Value>>, tensors: readonly Tensor[]): Uint8Array {
  const parts: Uint8Array[] = [new TextEncoder().encode("GGUF"), u32(VERSION)];
  parts.push(u64(tensors.length), u64(Object.keys(values).length));
  for (const [key, value] of Object.entries(values)) parts.push(text(key), ...valueParts(value));
  let offset = 0;
  for (const { name, columns, data } of tensors) {
    const rows = data.length / columns;
    // The fastest dimension comes first; norms are vectors.
    const shape = rows === 1 ? [columns] : [columns, rows];
    parts.push(text(name), u32(shape.length), ...shape.map(u64), u32(F32_TENSOR), u64(offset));
    offset += aligned(data.byteLength);
  }
  const head = Buffer.concat(parts);
  const padded = (bytes: Uint8Array) => [bytes, new Uint8Array(aligned(bytes.length) - bytes.length)];
  const bodies = tensors.flatMap(({ data }) => padded(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)));
  return Buffer.concat([...padded(head), ...bodies]);
}

function valueParts(value: Value): Uint8Array[] {
  if (value.kind === "string") return [u32(TYPES.string), text(value.value)];
  if (value.kind === "bool") return [u32(TYPES.bool), Uint8Array.of(value.value ? 1 : 0)];
  if (value.kind === "strings") return [...arrayHead(TYPES.string, value.value), ...value.value.map(text)];
  if (value.kind === "i32s")
    return [...arrayHead(TYPES.i32, value.value), new Uint8Array(Int32Array.from(value.value).buffer)];
  const number = value.kind === "f32" ? Float32Array.of(value.value) : Int32Array.of(value.value);
  return [u32(TYPES[value.kind]), new Uint8Array(number.buffer)];
}

function arrayHead(type: number, items: readonly unknown[]): Uint8Array[] {
  return [u32(TYPES.array), u32(type), u64(items.length)];
}

function text(value: string): Uint8Array {
  const bytes = new TextEncoder().encode(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function aligned(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT;
}
