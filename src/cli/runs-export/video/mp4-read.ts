/** The facts of an MP4 file from its own boxes: no frame is decoded, and of the file only its index is read. */
import { boxes, findIndex, kindOf, letters, viewOf } from "../../../std/mp4-boxes.ts";
import { Problem } from "../../../std/problem.ts";
import type { VideoFacts } from "./facts.ts";
import { timesOf } from "./mp4-times.ts";

/** An index of this number of bytes describes days of video; a larger one is damaged. */
const INDEX_BYTES_MAX = 256 * 1024 * 1024;

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
  const file = Bun.file(path);
  const read = (from: number, to: number) => file.slice(from, to).bytes();
  try {
    const found = await findIndex((await file.stat()).size, read);
    if (found === "cut") return unusable(path, "it is cut off, or no MP4 file");
    if (found === "none")
      return unusable(path, "it has no index; perhaps its recorder was stopped before it could write one");
    const { from, to } = found;
    if (to - from > INDEX_BYTES_MAX) return unusable(path, `its index has ${to - from} bytes`);
    return viewOf(await read(from, to));
  } catch (error) {
    return new Problem(`cannot read '${path}': ${(error as Error).message}`);
  }
}

/** The facts, or why there are none. */
function factsOf(index: DataView): VideoFacts | string {
  const kinds = boxes(index, "trak").map((track) => ({ track, kind: kindOf(track) }));
  const videos = kinds.filter(({ kind }) => kind === "vide");
  const [video] = videos;
  if (video === undefined || videos.length > 1) return `it has ${videos.length} video tracks, and must have one`;
  const [entries] = boxes(video.track, "mdia", "minf", "stbl", "stsd");
  if (entries === undefined) return "its index does not say how its frames are coded";
  const times = timesOf(index, video.track);
  if (typeof times === "string") return times;
  const hasAudio = kinds.some(({ kind }) => kind === "soun");
  return { ...times, ...entryFacts(entries), hasAudio };
}

/** The first sample entry: a box of 78 bytes about the picture, then boxes about the codec. */
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
