/**
 * One safetensors file: 8 bytes with the length of the header, little-endian; the header, JSON; then the values of its tensors, little-endian and
 * row-major. The header is hostile input: every length is checked against the file before anything is read by it. Values are read in pieces.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { FileShort } from "../../std/file.ts";
import { Problem } from "../../std/problem.ts";
import { reason } from "../schema.ts";

/** One tensor of a file. */
export interface Stored {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes of a value. */
  readonly size: number;
  readonly file: TensorFile;
  /** Place in the file, and length, in bytes. */
  readonly begin: number;
  readonly bytes: number;
}

/** Bytes of a value of each type that a file may have. Weights and statistics are of the first three. */
const SIZES: Readonly<Record<string, number>> = {
  ...{ F32: 4, BF16: 2, F16: 2 },
  ...{ F64: 8, I64: 8, U64: 8, I32: 4, U32: 4, I16: 2, U16: 2, I8: 1, U8: 1, BOOL: 1, F8_E4M3: 1, F8_E5M2: 1 },
};
const FLOATS: readonly string[] = ["F32", "BF16", "F16"];
/** The longest header that the format allows. */
const HEADER_BYTES_MAX = 100_000_000;
const PIECE_BYTES = 1 << 20;
const ADVICE = "fetch the file again";

export class TensorFile {
  readonly tensors = new Map<string, Stored>();

  private constructor(
    readonly path: string,
    private readonly descriptor: number,
    /** Bytes before the first value. */
    readonly head: number,
  ) {}

  static open(path: string): TensorFile | Problem {
    let descriptor: number | undefined;
    let opened: TensorFile | string | undefined;
    try {
      // A pipe would block until another process writes to it.
      descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      opened = TensorFile.read(path, descriptor);
      if (typeof opened !== "string") return opened;
      return new Problem(`${path} is no whole safetensors file: ${opened}; ${ADVICE}`);
    } catch (error) {
      return new Problem(`${path} cannot be read (${reason(error)}); name the folder of a checkpoint`);
    } finally {
      if (descriptor !== undefined && !(opened instanceof TensorFile)) closeSync(descriptor);
    }
  }

  /** The file, or what is wrong with its header. */
  private static read(path: string, descriptor: number): TensorFile | string {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return "it is a folder, a pipe or a device, expected a file";
    const { size } = stats;
    if (size < 8) return `it has ${size} bytes, expected at least 8`;
    const start = new DataView(new ArrayBuffer(8));
    readSync(descriptor, start, 0, 8, 0);
    const length = start.getBigUint64(0, true);
    if (length > BigInt(Math.min(size - 8, HEADER_BYTES_MAX)))
      return `its header has ${length} bytes, expected ${Math.min(size - 8, HEADER_BYTES_MAX)} at most`;
    const text = new Uint8Array(Number(length));
    readSync(descriptor, text, 0, text.length, 8);
    let header: unknown;
    try {
      header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
    } catch (error) {
      return `its header is not JSON (${(error as Error).message})`;
    }
    if (typeof header !== "object" || header === null || Array.isArray(header)) return "its header is no object";
    const file = new TensorFile(path, descriptor, 8 + text.length);
    return file.describe(header, size) ?? file;
  }

  /** Fills `tensors` in the order of the file; what is wrong, if anything is. */
  private describe(header: object, fileBytes: number): string | undefined {
    const found: Stored[] = [];
    for (const [name, entry] of Object.entries(header)) {
      if (name === "__metadata__") continue;
      const one = this.tensorOf(name, entry);
      if (typeof one === "string") return `${name}: ${one}`;
      found.push(one);
    }
    let end = this.head;
    for (const one of found.sort((a, b) => a.begin - b.begin || a.bytes - b.bytes)) {
      if (one.begin !== end) return `${one.name} begins at ${one.begin}, expected ${end}, the end of the one before`;
      end += one.bytes;
      this.tensors.set(one.name, one);
    }
    return end === fileBytes ? undefined : `it has ${fileBytes} bytes, expected ${end}`;
  }

  private tensorOf(name: string, entry: unknown): Stored | string {
    const { dtype, shape, data_offsets: place } = (entry ?? {}) as Record<string, unknown>;
    const size = typeof dtype === "string" && Object.hasOwn(SIZES, dtype) ? SIZES[dtype] : undefined;
    if (typeof dtype !== "string" || size === undefined)
      return `dtype ${JSON.stringify(dtype)} is none of the format's`;
    const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
    if (!Array.isArray(shape) || !shape.every(isCount)) return `shape ${JSON.stringify(shape)}, expected whole numbers`;
    const [first = 1, end = 0] = Array.isArray(place) && place.length === 2 && place.every(isCount) ? place : [];
    if (first > end) return `data_offsets ${JSON.stringify(place)}, expected where it begins and ends`;
    const bytes = shape.reduce((product, one) => product * one, size);
    if (bytes !== end - first) return `${end - first} bytes, expected ${bytes} for [${shape}] ${dtype}`;
    return { name, dtype, shape, size, file: this, begin: this.head + first, bytes };
  }

  /** Reads `target.length` values of a tensor from its value number `first` on, as float32. Throws as the file system does. */
  floats({ dtype, begin, size }: Stored, first: number, target: Float32Array): void {
    const at = begin + first * size;
    if (dtype === "F32") {
      this.fill(new Uint8Array(target.buffer, target.byteOffset, target.byteLength), at);
      return;
    }
    const halves = new Uint16Array(target.length);
    this.fill(new Uint8Array(halves.buffer), at);
    if (dtype === "F16") {
      target.set(new Float16Array(halves.buffer));
      return;
    }
    const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
    for (let index = 0; index < bits.length; index += 1) bits[index] = (halves[index] ?? 0) << 16;
  }

  /** All bytes of a tensor. */
  bytes({ begin, bytes }: Stored): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(bytes);
    this.fill(all, begin);
    return all;
  }

  /** The bytes of the whole file in order, each piece with the tensor that it is of. A piece is valid until the next one is asked for. */
  *pieces(): Generator<{ readonly bytes: Uint8Array; readonly of: Stored | undefined }> {
    const buffer = new Uint8Array(PIECE_BYTES);
    const spans = [{ begin: 0, bytes: this.head, of: undefined }, ...this.tensors.values()];
    for (const span of spans) {
      const of = "of" in span ? undefined : span;
      for (let done = 0; done < span.bytes; done += PIECE_BYTES) {
        const bytes = buffer.subarray(0, Math.min(PIECE_BYTES, span.bytes - done));
        this.fill(bytes, span.begin + done);
        yield { bytes, of };
      }
    }
  }

  close(): void {
    closeSync(this.descriptor);
  }

  private fill(bytes: Uint8Array, at: number): void {
    for (let done = 0; done < bytes.length; ) {
      const read = readSync(this.descriptor, bytes, done, bytes.length - done, at + done);
      if (read === 0) throw new FileShort(`${this.path} became shorter while it was read`);
      done += read;
    }
  }
}

export function isFloat({ dtype }: Stored): boolean {
  return FLOATS.includes(dtype);
}

/** All values of a tensor as float32. */
export function valuesOf(stored: Stored): Float32Array {
  const values = new Float32Array(stored.bytes / stored.size);
  stored.file.floats(stored, 0, values);
  return values;
}

/** Whether bytes of a tensor of floats, whole values of them, hold one that is infinite or not a number: all bits of its exponent are set. */
export function hasNotFinite(of: Stored, bytes: Uint8Array): boolean {
  const exponent = { F32: 0x7f800000, F16: 0x7c00 }[of.dtype] ?? 0x7f80;
  const words = wordsOf(of, bytes);
  // A loop: a call for each of thousands of millions of values takes minutes.
  for (let at = 0; at < words.length; at += 1) if ((~(words[at] ?? 0) & exponent) === 0) return true;
  return false;
}

/** Whether they hold one with more significant bits than the 8 of bfloat16. */
export function hasFiner(of: Stored, bytes: Uint8Array): boolean {
  const lower = { F32: 0xffff, F16: 0x7 }[of.dtype] ?? 0;
  const words = wordsOf(of, bytes);
  for (let at = 0; lower > 0 && at < words.length; at += 1) if (((words[at] ?? 0) & lower) !== 0) return true;
  return false;
}

function wordsOf({ dtype }: Stored, { buffer, byteOffset, length }: Uint8Array): Uint32Array | Uint16Array {
  return dtype === "F32"
    ? new Uint32Array(buffer, byteOffset, length / 4)
    : new Uint16Array(buffer, byteOffset, length / 2);
}
