/** The checks of a JPEG file before it goes to the decoders. */

import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";

/** The start-of-image marker and the first byte of the next one. */
export function startsAsJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff;
}

/** `where`: the request field, where it has one. */
export function jpegSizeFault(bytes: number, where: { readonly param?: string } = {}): Failure | undefined {
  if (bytes <= LIMITS.jpegBytesMax) return undefined;
  const message = `the JPEG has ${bytes} bytes, at most ${LIMITS.jpegBytesMax} are allowed; compress it more strongly`;
  return new Failure(ROBOT.image_too_large, message, where);
}
