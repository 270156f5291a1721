/**
 * The boxes of an MP4 file (ISO/IEC 14496-12). A box is a size of 32 bits, four letters, and what is inside. Size 1 means that 64 bits
 * follow the letters, and 0 means "to the end".
 */

/** Reads all bytes [start, end) of a file. */
export type ReadRange = (start: number, end: number) => Promise<Uint8Array>;

/** A file has few boxes before its index, such as `ftyp`, `free` and `mdat`. Each costs a read, in the player a request. */
const TOP_BOXES_MAX = 16;

/** The span of what is in the file's first `moov` box, its index; `cut` if a box before it ends behind the file. */
export async function findIndex(size: number, read: ReadRange): Promise<{ from: number; to: number } | "cut" | "none"> {
  let at = 0;
  for (let count = 0; count < TOP_BOXES_MAX && at + 8 <= size; count += 1) {
    const { type, from, length } = boxAt(viewOf(await read(at, Math.min(at + 16, size))), 0, size - at);
    if (length < from || at + length > size) return "cut";
    if (type === "moov") return { from: at + from, to: at + length };
    at += length;
  }
  return "none";
}

/** The head of the box at `at`: its letters, the offset of its inside, and its whole length, which is 0 if the head is cut off. */
function boxAt(view: DataView, at: number, left: number): { type: string; from: number; length: number } {
  const [size, type] = [view.getUint32(at), letters(view, at + 4)];
  if (size !== 1) return { type, from: 8, length: size === 0 ? left : size };
  return { type, from: 16, length: at + 16 <= view.byteLength ? Number(view.getBigUint64(at + 8)) : 0 };
}

export function letters(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}

/** The insides of the boxes of a type, found down a path of types, as far as they are in the view. */
export function boxes(view: DataView, ...path: readonly string[]): DataView[] {
  const [type, ...deeper] = path;
  if (type === undefined) return [view];
  const found: DataView[] = [];
  for (let at = 0; at + 8 <= view.byteLength; ) {
    const box = boxAt(view, at, view.byteLength - at);
    if (box.length < box.from) break;
    if (box.type === type) {
      const length = Math.min(box.length, view.byteLength - at) - box.from;
      found.push(...boxes(new DataView(view.buffer, view.byteOffset + at + box.from, length), ...deeper));
    }
    at += box.length;
  }
  return found;
}

/** The four letters of a track's handler, `vide` for a video. */
export function kindOf(track: DataView): string | undefined {
  return boxes(track, "mdia", "hdlr").map((handler) => letters(handler, 8))[0];
}

/** The ticks in a second of a track's clock, from its `mdhd` box. */
export function ticksPerSecond(header: DataView): number {
  return header.getUint32(header.getUint8(0) === 1 ? 20 : 12);
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
