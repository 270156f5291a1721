/** What decodes the frames of a model on an NVIDIA GPU, in words. */
import type { FrameDecoder } from "./engine.ts";

/** Which decoder, what both take, how far apart their pixels are, and why it is not nvJPEG where that is asked for. */
export function frameDecoderWords({ nvjpeg, reason, version, decoders, times, apart }: FrameDecoder): string {
  const name = version === undefined ? "nvJPEG" : `nvJPEG ${version}`;
  const chosen = nvjpeg
    ? `${name} decodes frames, ${decoders} at once`
    : `libjpeg-turbo decodes frames: ${reason ?? "nobody knows why"}`;
  const took =
    times &&
    `the frames of an observation took ${name} ${micros(times.deviceUs)}, libjpeg-turbo ${micros(times.hostUs)}`;
  const far =
    apart &&
    `pixels of both differ by ${apart.largest} of 255 levels at most, ${apart.mean.toPrecision(2)} in the mean`;
  return [chosen, took, far].filter((part) => part !== undefined).join("; ");
}

const micros = (us: number): string => `${us.toFixed(0)} µs`;
