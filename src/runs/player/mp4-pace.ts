/**
 * The frame duration of an MP4 video (ISO 14496-12). Arrow keys move by one frame, and browsers do not expose its duration. It is read
 * from the track's clock (`mdhd`) and the first entry of `stts`.
 */
import type { ReadRange } from "./paged-file.ts";

const HEADER_BYTES = 16;
/** The boxes that are read lie before the long tables of `moov`. */
const MOOV_BYTES_MAX = 64 * 1024;
/** A file has few boxes at the top level: `ftyp`, `free`, `mdat`, `moov`. */
const BOXES_MAX = 12;

export async function frameSecondsOf(size: number, read: ReadRange): Promise<number | undefined> {
  let start = 0;
  for (let count = 0; count < BOXES_MAX && start + HEADER_BYTES <= size; count += 1) {
    const box = boxAt(viewOf(await read(start, start + HEADER_BYTES)), 0, size - start);
    if (box === undefined) return undefined;
    if (box.type === "moov") {
      const moov = viewOf(await read(start + box.content, start + Math.min(box.end, MOOV_BYTES_MAX)));
      return videoPace(moov);
    }
    start += box.end;
  }
  return undefined;
}

interface Box {
  readonly type: string;
  readonly content: number;
  readonly end: number;
}

function boxAt(view: DataView, at: number, limit: number): Box | undefined {
  if (at + 8 > view.byteLength) return undefined;
  const short = view.getUint32(at);
  const long = short === 1 && at + 16 <= view.byteLength ? Number(view.getBigUint64(at + 8)) : undefined;
  const size = long ?? (short === 0 ? limit - at : short);
  const type = String.fromCharCode(...[4, 5, 6, 7].map((index) => view.getUint8(at + index)));
  const content = at + (long === undefined ? 8 : 16);
  return size < content - at ? undefined : { type, content, end: at + size };
}

function videoPace(moov: DataView): number | undefined {
  for (const trak of boxesIn(moov, 0, moov.byteLength)) {
    if (trak.type !== "trak") continue;
    const inside = (path: readonly string[]) => descend(moov, trak, path);
    const handler = inside(["mdia", "hdlr"]);
    const clock = inside(["mdia", "mdhd"]);
    const times = inside(["mdia", "minf", "stbl", "stts"]);
    if (handler === undefined || clock === undefined || times === undefined) continue;
    if (times.content + 16 > moov.byteLength || moov.getUint32(handler.content + 8) !== VIDE) continue;
    const wide = moov.getUint8(clock.content) === 1;
    const perSecond = moov.getUint32(clock.content + (wide ? 20 : 12));
    const frame = moov.getUint32(times.content + 12);
    return perSecond > 0 && frame > 0 ? frame / perSecond : undefined;
  }
  return undefined;
}

/** The handler type `vide` marks a video track. */
const VIDE = 0x76696465;

function descend(view: DataView, from: Box, path: readonly string[]): Box | undefined {
  let box: Box | undefined = from;
  for (const name of path) {
    box = box && boxesIn(view, box.content, Math.min(box.end, view.byteLength)).find(({ type }) => type === name);
  }
  return box;
}

function boxesIn(view: DataView, from: number, to: number): Box[] {
  const boxes: Box[] = [];
  for (let at = from; at < to; ) {
    const box = boxAt(view, at, to);
    if (box === undefined) break;
    boxes.push(box);
    at = box.end;
  }
  return boxes;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
