/**
 * Motion JPEG in an MP4 file: the samples are the JPEG files as they are, so nothing is encoded again. One track, one chunk of
 * samples, and the index after them. FFmpeg, and all that is built on it, knows `mp4v` with the object type 0x6C as JPEG.
 */
import { open } from "node:fs/promises";
import type { JpegFacts } from "./jpeg-facts.ts";

/** Ticks between two frames. A rate is kept in thousandths of a frame per second. */
const TICKS = 1000;
const JPEG_OBJECT_TYPE = 0x6c;
/** Times and matrices have fixed points; this is the one that leaves the picture as it is. */
const UNIT_MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];

export interface MotionJpeg {
  readonly path: string;
  /** In the order of the frames; read one at a time. */
  readonly jpegs: AsyncIterable<Uint8Array>;
  readonly fps: number;
  readonly facts: JpegFacts;
}

export async function writeMotionJpeg({ path, jpegs, fps, facts }: MotionJpeg): Promise<void> {
  const file = await open(path, "wx");
  try {
    const type = box("ftyp", text("isom"), u32(512), text("isomiso2mp41"));
    await file.writeFile(type);
    // The length of the samples, in its wide form, is written when it is known.
    const dataAt = type.length;
    await file.writeFile(concat([u32(1), text("mdat"), u32(0, 0)]));
    const sizes: number[] = [];
    let bytes = 16;
    for await (const jpeg of jpegs) {
      await file.writeFile(jpeg);
      sizes.push(jpeg.length);
      bytes += jpeg.length;
    }
    await file.writeFile(indexOf(sizes, dataAt + 16, Math.round(fps * TICKS), facts));
    await file.write(u32(Math.floor(bytes / 2 ** 32), bytes % 2 ** 32), 0, 8, dataAt + 8);
  } finally {
    await file.close();
  }
}

function indexOf(
  sizes: readonly number[],
  samplesAt: number,
  timescale: number,
  { width, height }: JpegFacts,
): Uint8Array {
  const ticks = sizes.length * TICKS;
  const tables = box(
    "stbl",
    full("stsd", u32(1), sampleEntry(width, height, sizes)),
    full("stts", u32(1, sizes.length, TICKS)),
    full("stsc", u32(1, 1, sizes.length, 1)),
    full("stsz", u32(0, sizes.length), words(sizes)),
    full("stco", u32(1, samplesAt)),
  );
  const media = box(
    "mdia",
    // Language "und", in three times five bits.
    full("mdhd", u32(0, 0, timescale, ticks), u16(0x55c4, 0)),
    full("hdlr", u32(0), text("vide"), u32(0, 0, 0), text("video\0")),
    box(
      "minf",
      // Flag 1, as the standard wants it.
      box("vmhd", u32(1, 0, 0)),
      // The one data reference is this file, which flag 1 says.
      box("dinf", full("dref", u32(1), box("url ", u32(1)))),
      tables,
    ),
  );
  const shown = [...UNIT_MATRIX, width * 0x10000, height * 0x10000];
  // Flag 3: enabled, and part of the presentation.
  const trackHeader = box("tkhd", u32(3, 0, 0, 1, 0, ticks, 0, 0, 0, 0), u32(...shown));
  const movieHeader = full(
    "mvhd",
    u32(0, 0, timescale, ticks, 0x10000),
    u16(0x100, 0),
    u32(0, 0, ...UNIT_MATRIX),
    u32(0, 0, 0, 0, 0, 0, 2),
  );
  return box("moov", movieHeader, box("trak", trackHeader, media));
}

function sampleEntry(width: number, height: number, sizes: readonly number[]): Uint8Array {
  const picture = concat([
    // Reserved, data reference 1, and eight reserved words.
    u16(0, 0, 0, 1),
    u32(0, 0, 0, 0),
    u16(width, height),
    // 72 dots per inch twice, reserved, one frame a sample, no name of a compressor, depth 24, no colour table.
    u32(0x480000, 0x480000, 0),
    u16(1),
    new Uint8Array(32),
    u16(24, 0xffff),
  ]);
  const largest = Math.min(
    0xffffff,
    sizes.reduce((most, size) => Math.max(most, size), 0),
  );
  // Stream type 4, visual, above a reserved bit that is set; then the size of the decoder's buffer, and bit rates that nobody knows.
  const decoder = descriptor(
    4,
    concat([new Uint8Array([JPEG_OBJECT_TYPE, 0x11, largest >> 16, (largest >> 8) & 255, largest & 255]), u32(0, 0)]),
  );
  return box(
    "mp4v",
    picture,
    full("esds", descriptor(3, concat([u16(1), new Uint8Array([0]), decoder, descriptor(6, new Uint8Array([2]))]))),
  );
}

/** A descriptor of MPEG-4 systems: a tag, a length of less than 128, and what is inside. */
function descriptor(tag: number, body: Uint8Array): Uint8Array {
  return concat([new Uint8Array([tag, body.length]), body]);
}

function box(type: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const size = parts.reduce((sum, { length }) => sum + length, 8);
  return concat([u32(size), text(type), ...parts]);
}

/** A box that begins with version and flags, all zero. */
function full(type: string, ...parts: readonly Uint8Array[]): Uint8Array {
  return box(type, u32(0), ...parts);
}

function u32(...values: readonly number[]): Uint8Array {
  return words(values);
}

function words(values: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value);
  return new Uint8Array(view.buffer);
}

function u16(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values.flatMap((value) => [value >> 8, value & 255]));
}

function text(letters: string): Uint8Array {
  return new TextEncoder().encode(letters);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}
