/** Which GPUs the device code of a build is for, as its fat binary says (src/setup/gpu-kernels.mjs makes it). */

export interface FatBinary {
  /** Architectures that it has machine code for, for example 90, in order. */
  readonly code: readonly number[];
  /** Those of the text that the driver compiles from, for other GPUs. */
  readonly ptx: readonly number[];
}

const MAGIC = 0xba55ed50;
const HEAD_BYTES = 16;
const PART_HEAD_BYTES_MIN = 32;
const PTX = 1;

/** Behind its head one part after the other, each with its kind, its sizes and its architecture. Undefined if it is not one. */
export function fatBinary(file: Uint8Array): FatBinary | undefined {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < HEAD_BYTES || view.getUint32(0, true) !== MAGIC) return undefined;
  const found = { code: new Set<number>(), ptx: new Set<number>() };
  for (let at = HEAD_BYTES; at < file.length; ) {
    if (at + PART_HEAD_BYTES_MIN > file.length) return undefined;
    const kind = view.getUint16(at, true) === PTX ? found.ptx : found.code;
    kind.add(view.getUint32(at + 28, true));
    const bytes = view.getUint32(at + 4, true) + Number(view.getBigUint64(at + 8, true));
    if (bytes < PART_HEAD_BYTES_MIN || at + bytes > file.length) return undefined;
    at += bytes;
  }
  const ordered = (numbers: ReadonlySet<number>) => [...numbers].sort((a, b) => a - b);
  return { code: ordered(found.code), ptx: ordered(found.ptx) };
}
