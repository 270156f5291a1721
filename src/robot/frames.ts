/** The camera frames of one observation, from their transport into the engine. */
import type { Frame, Model } from "../engine/engine.ts";
import { Fault } from "../engine/fault.ts";
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import { ROBOT } from "./errors.ts";
import { failureOf } from "./faults.ts";

export interface FrameImage {
  readonly jpeg: Uint8Array;
  /** The request field, for `param`. */
  readonly param: string;
}

/** A frame that the decoders have, or had. */
export interface PutFrame {
  readonly frame: Frame;
  /** The field, or the camera and its frame, that an error names. */
  readonly param: string;
}

export interface ObservedFrames {
  /** Their number: in all, or of each camera where each frame names its camera. */
  readonly counts: number | readonly number[];
  /** Frame permits that it still needs. */
  readonly permitsMissing: number;
  /** Processor time that decodes of frames took that no inference has taken, milliseconds; final once `close` has resolved. */
  readonly decodeMs: number;
  /** They came in one body with their observation. */
  readonly inBody: boolean;
  /** SHA-256 of each frame, by camera, oldest first. To be asked before `put`. */
  digests(cameras: number): readonly (readonly string[])[];
  /** All frames, camera-major, oldest first; those that the decoders do not have yet are handed over. */
  put(model: Model, turn: number): readonly PutFrame[] | Failure;
  /** Takes back what no inference has taken. */
  drop(): void;
  /** `drop`, and resolves when no decoder is at a frame any more: their permits are free then. */
  close(): Promise<void>;
}

/** The frames that came with their observation in one body. */
export class BodyFrames implements ObservedFrames {
  readonly inBody = true;
  private readonly taken: PutFrame[] = [];

  /** `images`: camera-major, oldest first; emptied once the engine has copied them, because an inference may wait for long. */
  constructor(private readonly images: FrameImage[]) {}

  get counts(): number {
    return this.images.length;
  }

  get permitsMissing(): number {
    return this.images.length;
  }

  get decodeMs(): number {
    return this.taken.reduce((sum, { frame }) => sum + frame.decodeMs, 0);
  }

  /** A number of images that does not divide by the cameras gives one list. Such an observation is refused later on. */
  digests(cameras: number): readonly (readonly string[])[] {
    const digests = this.images.map(({ jpeg }) => frameDigest(jpeg));
    const perCamera = digests.length / cameras;
    if (!Number.isInteger(perCamera)) return [digests];
    return Array.from({ length: cameras }, (_, camera) => digests.slice(camera * perCamera, (camera + 1) * perCamera));
  }

  put(model: Model, turn: number): readonly PutFrame[] | Failure {
    for (const { jpeg, param } of this.images.splice(0)) {
      const frame = model.framePut(jpeg, turn);
      if (frame instanceof Fault) return failureOf(frame, param);
      this.taken.push({ frame, param });
    }
    return this.taken;
  }

  drop(): void {
    for (const { frame } of this.taken) frame.drop();
  }

  async close(): Promise<void> {
    this.drop();
    // A frame that is dropped while it is queued keeps its permit until a decode thread takes it from the queue.
    await Promise.all(this.taken.map(({ frame }) => frame.freed()));
  }
}

/** Waits for the decoders of frames that no inference has taken; the first bad one in the order of the model. */
export async function firstBad(frames: readonly PutFrame[]): Promise<Failure | undefined> {
  const faults = await Promise.all(frames.map(({ frame }) => frame.decoded()));
  const index = faults.findIndex((fault) => fault !== undefined);
  const fault = faults[index];
  return fault && failureOf(fault, frames[index]?.param);
}

export function frameDigest(jpeg: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(jpeg).digest("base64");
}

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
