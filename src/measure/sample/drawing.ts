/** SVG to a camera-like JPEG, with sharp: the only file that imports it. Not on the robot's path. */
import type sharpType from "sharp";
import { Problem } from "../../std/problem.ts";
import { RandomStream } from "../../std/random.ts";
import { FRAME_PX, sceneSvg, VIEWS, type View } from "./scene.ts";

/** Sensor noise, standard deviation in 8-bit levels: a drawing without it would compress to a tenth of a real frame. */
const NOISE_LEVELS = 4.5;
/** JPEG quality, of 100. Gives 40 to 70 kB for 640×360 with that noise, as the robot's cameras do. */
const JPEG_QUALITY = 88;

/** sharp and libvips, opened at the first drawing, so that no other command pays for them. */
async function openSharp(): Promise<typeof sharpType | Problem> {
  try {
    return (await import("sharp")).default;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return new Problem(
      `cannot draw pictures: the image library sharp did not open (${reason}). In a checkout run: npm ci. ` +
        "Otherwise take three camera frames of your own; every other command works without sharp",
    );
  }
}

/** Pixels. */
type FrameSize = Readonly<Record<"width" | "height", number>>;

/** One drawn camera frame as a baseline 4:2:0 JPEG. The same view, seed and size give the same pixels. */
async function drawFrame(view: View, seed: number, { width, height }: FrameSize): Promise<Uint8Array | Problem> {
  const sharp = await openSharp();
  if (sharp instanceof Problem) return sharp;
  const pixels = await sharp(Buffer.from(sceneSvg(view, seed)))
    .resize(width, height, { fit: "fill" })
    .removeAlpha()
    .raw()
    .toBuffer();
  addNoise(pixels, `noise/${seed}/${view}`);
  const jpeg = await sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: JPEG_QUALITY, chromaSubsampling: "4:2:0" })
    .toBuffer();
  return new Uint8Array(jpeg);
}

/** One frame of every view, in the order of the wire. */
export async function sampleFrames(seed: number, size: FrameSize = FRAME_PX): Promise<Uint8Array[] | Problem> {
  const frames: Uint8Array[] = [];
  for (const view of VIEWS) {
    const jpeg = await drawFrame(view, seed, size);
    if (jpeg instanceof Problem) return jpeg;
    frames.push(jpeg);
  }
  return frames;
}

/** Adds the same bell-shaped noise to the three channels of a pixel, and a little more to each. */
function addNoise(rgb: Uint8Array, key: string): void {
  const stream = new RandomStream(key);
  for (let at = 0; at + 2 < rgb.length; at += 3) {
    const word = stream.word();
    // Four uniform bytes: mean 510, standard deviation sqrt(4 · (256² − 1) / 12), near enough to a normal distribution.
    const sum = (word & 255) + ((word >>> 8) & 255) + ((word >>> 16) & 255) + (word >>> 24);
    const shared = ((sum - 510) / 147.8) * NOISE_LEVELS;
    const own = stream.word();
    for (let channel = 0; channel < 3; channel++) {
      const uniform = (((own >>> (8 * channel)) & 255) - 127.5) / 73.9;
      const value = (rgb[at + channel] ?? 0) + shared + uniform * NOISE_LEVELS * 0.3;
      rgb[at + channel] = Math.max(0, Math.min(255, Math.round(value)));
    }
  }
}
