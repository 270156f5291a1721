/** Size and colours of a JPEG file, from the header of its frame. Nothing is decoded. */
import type { VideoFacts } from "./facts.ts";

export type JpegFacts = Pick<VideoFacts, "width" | "height" | "pixels" | "channels">;

/** How often luminance is sampled for one sample of colour, in both directions. */
const SAMPLINGS: Readonly<Record<string, string>> = {
  "2x2": "yuvj420p",
  "2x1": "yuvj422p",
  "1x1": "yuvj444p",
  "1x2": "yuvj440p",
};

/** Undefined for bytes that are no JPEG file of one or three colours. */
export function jpegFacts(jpeg: Uint8Array): JpegFacts | undefined {
  if (jpeg[0] !== 0xff || jpeg[1] !== 0xd8) return undefined;
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  for (let at = 2; at + 9 < jpeg.length; ) {
    const marker = view.getUint8(at + 1);
    if (view.getUint8(at) !== 0xff) return undefined;
    // Fill bytes before a marker.
    if (marker === 0xff) at += 1;
    else if (isFrame(marker)) return frameFacts(view, at + 4);
    else at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}

/** SOF0 to SOF15; of the same sixteen codes DHT, JPG and DAC are other markers. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** The fields from `at`: precision, height, width, number of components, and per component an id and its two samplings. */
function frameFacts(view: DataView, at: number): JpegFacts | undefined {
  const [height, width, components] = [view.getUint16(at + 1), view.getUint16(at + 3), view.getUint8(at + 5)];
  if (height === 0 || width === 0 || at + 6 + 3 * components > view.byteLength) return undefined;
  if (components === 1) return { width, height, pixels: "gray", channels: 1 };
  if (components !== 3) return undefined;
  const [luminance = 0, colour = 0] = [0, 1].map((index) => view.getUint8(at + 7 + 3 * index));
  const ratio = `${(luminance >> 4) / (colour >> 4)}x${(luminance & 15) / (colour & 15)}`;
  return { width, height, pixels: SAMPLINGS[ratio], channels: 3 };
}
