/**
 * The facts of an MP4 file from its own boxes (ISO/IEC 14496-12): no frame is decoded, and of the file only its index is read.
 * A box is a size of 32 bits, four letters, and what is inside; size 1 means that 64 bits follow the letters, 0 "to the end".
 */
import { type FileHandle, open } from "node:fs/promises";
import { Problem } from "../../../std/problem.ts";
import type { VideoFacts } from "./facts.ts";

/** An index of this number of bytes describes days of video; a larger one is damaged. */
const INDEX_BYTES_MAX = 256 * 1024 * 1024;
/** A frame may be so far, in seconds, from where a constant rate has it: LeRobot refuses to read one that is further. */
const JITTER_SECONDS_MAX = 1e-4;

/** Sample entries and the names that FFmpeg has for their codecs. */
const CODECS: Readonly<Record<string, string>> = {
  ...{ avc1: "h264", avc3: "h264", hvc1: "hevc", hev1: "hevc", av01: "av1", vp09: "vp9", jpeg: "mjpeg", mp4v: "mpeg4" },
};
const JPEG_OBJECT_TYPE = 0x6c;
/** H.264 profiles whose colours are always 4:2:0 of eight bits: baseline, main, extended, high. */
const PROFILES_420 = [66, 77, 88, 100];

export async function mp4Facts(path: string): Promise<VideoFacts | Problem> {
  const index = await readIndex(path);
  if (index instanceof Problem) return index;
  try {
    const facts = factsOf(index);
    return typeof facts === "string" ? unusable(path, facts) : facts;
  } catch (error) {
    // A table that ends before its count does.
    if (error instanceof RangeError) return unusable(path, "its index is cut off");
    throw error;
  }
}

function unusable(path: string, why: string): Problem {
  return new Problem(`'${path}' is not a video that can be exported: ${why}`);
}

/** What is in the file's `moov` box. */
async function readIndex(path: string): Promise<DataView | Problem> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const { size } = await file.stat();
    const head = new DataView(new ArrayBuffer(16));
    for (let at = 0; at + 8 <= size; ) {
      await file.read(head, 0, 16, at);
      const { type, from, length } = boxAt(head, 0, size - at);
      if (length < from || at + length > size) return unusable(path, "it is cut off, or no MP4 file");
      if (type === "moov" && length > INDEX_BYTES_MAX) return unusable(path, `its index has ${length} bytes`);
      if (type === "moov") {
        const index = new DataView(new ArrayBuffer(length - from));
        await file.read(index, 0, length - from, at + from);
        return index;
      }
      at += length;
    }
    return unusable(path, "it has no index; perhaps its recorder was stopped before it could write one");
  } catch (error) {
    return new Problem(`cannot read '${path}': ${(error as Error).message}`);
  } finally {
    await file?.close();
  }
}

/** The head of the box at `at`: its letters, where its inside begins, and its whole length. */
function boxAt(view: DataView, at: number, left: number): { type: string; from: number; length: number } {
  const [size, type] = [view.getUint32(at), letters(view, at + 4)];
  if (size === 1) return { type, from: 16, length: Number(view.getBigUint64(at + 8)) };
  return { type, from: 8, length: size === 0 ? left : size };
}

function letters(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}

/** The insides of the boxes of a type, found down a path of types. */
function boxes(view: DataView, ...path: readonly string[]): DataView[] {
  const [type, ...deeper] = path;
  if (type === undefined) return [view];
  const found: DataView[] = [];
  for (let at = 0; at + 8 <= view.byteLength; ) {
    const box = boxAt(view, at, view.byteLength - at);
    if (box.length < box.from) break;
    if (box.type === type) {
      const inside = new DataView(view.buffer, view.byteOffset + at + box.from, box.length - box.from);
      found.push(...boxes(inside, ...deeper));
    }
    at += box.length;
  }
  return found;
}

/** The facts, or why there are none. */
function factsOf(index: DataView): VideoFacts | string {
  const kinds = boxes(index, "trak").map((track) => ({
    track,
    kind: boxes(track, "mdia", "hdlr").map((view) => letters(view, 8))[0],
  }));
  const videos = kinds.filter(({ kind }) => kind === "vide");
  const [video] = videos;
  if (video === undefined || videos.length > 1) return `it has ${videos.length} video tracks, and must have one`;
  const [header] = boxes(video.track, "mdia", "mdhd");
  const [tables] = boxes(video.track, "mdia", "minf", "stbl");
  const [entries, times] = ["stsd", "stts"].map((type) => tables && boxes(tables, type)[0]);
  if (header === undefined || entries === undefined || times === undefined) return "its index has no table of frames";
  const rate = rateOf(times, header.getUint32(header.getUint8(0) === 1 ? 20 : 12));
  if (typeof rate === "string") return rate;
  const hasAudio = kinds.some(({ kind }) => kind === "soun");
  return { ...rate, ...entryFacts(entries), hasAudio };
}

/** Number of frames and their rate: runs of (count, ticks of the timescale), of which the very last frame's length says nothing. */
function rateOf(times: DataView, timescale: number): { fps: number; frames: number } | string {
  const runs = Array.from({ length: times.getUint32(4) }, (_, run) => ({
    count: times.getUint32(8 + run * 8),
    ticks: times.getUint32(12 + run * 8),
  }));
  const frames = runs.reduce((sum, { count }) => sum + count, 0);
  if (frames === 0) return "it is fragmented, or empty; write it anew with: ffmpeg -i IN -c copy OUT.mp4";
  const total = runs.reduce((sum, { count, ticks }) => sum + count * ticks, 0);
  const last = runs.at(-1)?.ticks ?? 0;
  const fps = frames === 1 ? timescale / total : ((frames - 1) * timescale) / (total - last);
  if (!Number.isFinite(fps) || fps <= 0) return "its frames have no length of time";
  let [frame, ticks] = [0, 0];
  for (const run of runs) {
    // Between the ends of a run frames are in line, so that its ends are the furthest from a constant rate.
    for (const step of [1, run.count - 1]) {
      const at = (ticks + step * run.ticks) / timescale;
      const off = Math.abs(at - (frame + step) / fps);
      if (frame + step < frames && off > JITTER_SECONDS_MAX)
        return "its frames do not come at a constant rate; write it anew with: ffmpeg -i IN -vf fps=30 OUT.mp4";
    }
    [frame, ticks] = [frame + run.count, ticks + run.count * run.ticks];
  }
  return { fps, frames };
}

/** Of the first sample entry: a box of 78 bytes about the picture, then boxes about the codec. */
function entryFacts(entries: DataView): Pick<VideoFacts, "width" | "height" | "codec" | "pixels" | "channels"> {
  const type = letters(entries, 12);
  const [width, height] = [entries.getUint16(40), entries.getUint16(42)];
  const inside = new DataView(entries.buffer, entries.byteOffset + 94, entries.byteLength - 94);
  const described = boxes(inside, "esds")[0];
  const isJpeg = described !== undefined && objectTypeOf(described) === JPEG_OBJECT_TYPE;
  const codec = isJpeg ? "mjpeg" : (CODECS[type] ?? type);
  const profile = boxes(inside, "avcC")[0]?.getUint8(1);
  const pixels = profile !== undefined && PROFILES_420.includes(profile) ? "yuv420p" : undefined;
  return { width, height, codec, pixels, channels: 3 };
}

/**
 * The decoder's type in the descriptors of MPEG-4 systems: behind version and flags a stream's descriptor, with an id of two bytes
 * and flags, and in it the decoder's. Each has a tag and a length of one to four bytes, the upper bit saying that one more follows.
 */
function objectTypeOf(described: DataView): number {
  const inside = (at: number): number => (described.getUint8(at + 1) & 0x80 ? inside(at + 1) : at + 2);
  return described.getUint8(inside(inside(4) + 3));
}
