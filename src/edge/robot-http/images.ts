/** Image parts: `data:image/jpeg;base64,` URLs to JPEG bytes. */
import { Type } from "@sinclair/typebox";
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import type { FrameImage } from "../../robot/frames.ts";
import { jpegSizeFault, startsAsJpeg } from "../robot/jpeg.ts";
import type { ImagePart } from "./content.ts";

const PREFIX = "data:image/jpeg;base64,";
/** The base64 of the three bytes that `startsAsJpeg` looks for. */
const START = "/9j/";
/** Whole groups of four, the last one padded, and no bit set that the padding throws away. */
const GROUPS = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/** What `readImages` accepts, in words and as a pattern for programs; the functions below decide. */
export const imageUrlSchema = Type.String({
  pattern: `^${PREFIX}${START}${GROUPS}$`,
  maxLength: PREFIX.length + Math.ceil(LIMITS.jpegBytesMax / 3) * 4,
  description:
    `\`${PREFIX}\` and the base64 (RFC 4648, padded, no line breaks) of a JPEG file of at most ${LIMITS.jpegBytesMax} bytes and ` +
    `${LIMITS.jpegEdgePxMax} pixels along an edge: baseline or progressive, 8 bits, grey or colour (no CMYK). EXIF is not read, so a ` +
    "rotation must be in the pixels. Frames of any size are resized as the model's bundle says.",
});

const FORMAT = `send '${PREFIX}' followed by the base64 of a JPEG file`;

/**
 * Row by row over all images, in the order of the error table; sizes are judged from lengths before anything is decoded.
 * Failures: `invalid_image_url`, `image_too_large`, `unsupported_image_format`.
 */
export function readImages(parts: readonly ImagePart[]): FrameImage[] | Failure {
  for (const { url, param } of parts) {
    if (typeof url !== "string") {
      return new Failure(ROBOT.invalid_image_url, `the image's url must be a string; ${FORMAT}`, { param });
    }
  }
  for (const { url, param } of parts) {
    const failure = jpegSizeFault(decodedBytes(String(url)), { param });
    if (failure) return failure;
  }
  const images: FrameImage[] = [];
  let foreign: Failure | undefined;
  for (const { url, param } of parts) {
    const text = String(url);
    if (!text.startsWith(PREFIX)) {
      foreign ??= new Failure(ROBOT.unsupported_image_format, `the image is not a JPEG data URL; ${FORMAT}`, { param });
      continue;
    }
    const jpeg = decode(text.slice(PREFIX.length));
    if (!jpeg) {
      return new Failure(ROBOT.invalid_image_url, "the image is not valid base64 (RFC 4648, padded, no spaces)", {
        param,
      });
    }
    if (!startsAsJpeg(jpeg)) {
      foreign ??= new Failure(ROBOT.unsupported_image_format, `the image's bytes are no JPEG; ${FORMAT}`, { param });
    }
    images.push({ jpeg, param });
  }
  return foreign ?? images;
}

/** Bytes that the base64 of a data URL stands for, by its length; 0 for other texts. */
function decodedBytes(url: string): number {
  if (!url.startsWith(PREFIX)) return 0;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  return Math.floor(((url.length - PREFIX.length - padding) * 3) / 4);
}

/** Strict: padded, no stray bits, and no white space, which `fromBase64` would skip. */
function decode(base64: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return Math.ceil(bytes.length / 3) * 4 === base64.length ? bytes : undefined;
  } catch {
    return undefined;
  }
}
