/** Camera frames that arrive as messages of their own, before the observation that takes them. */
import type { Unpaid } from "../../charge/unpaid.ts";
import type { Frame, Model } from "../../engine/engine.ts";
import { Fault } from "../../engine/fault.ts";
import { present } from "../../std/assert.ts";
import { Failure } from "../../std/failure.ts";
import type { Log } from "../../std/log.ts";
import type { EarlyPermits } from "../admission.ts";
import type { Served } from "../catalog.ts";
import { ROBOT } from "../errors.ts";
import { failureOf } from "../faults.ts";
import { frameDigest, jpegSizeFault, type ObservedFrames, type PutFrame, startsAsJpeg } from "../frames.ts";
import type { RobotSocketDeps } from "./sockets.ts";

/** Bytes of the shortest JPEG header (contract section 3). */
const HEADER_BYTES = 3;

export interface FrameMessage {
  readonly camera: number;
  readonly jpeg: Uint8Array;
}

/** Failures: `invalid_frame`, `invalid_camera`, `image_too_large`, `unsupported_image_format`. */
export function readFrame(message: Uint8Array, cameras: readonly string[]): FrameMessage | Failure {
  const jpeg = message.subarray(1);
  if (jpeg.length < HEADER_BYTES) {
    return new Failure(ROBOT.invalid_frame, "a frame is one byte with the camera's index and then a JPEG file");
  }
  const camera = message[0] ?? 0;
  if (camera >= cameras.length) {
    const known = cameras.map((name, index) => `${index} (${name})`).join(", ");
    return new Failure(ROBOT.invalid_camera, `the model has no camera ${camera}; its cameras are ${known}`);
  }
  const tooLarge = jpegSizeFault(jpeg.length);
  if (tooLarge) return tooLarge;
  if (!startsAsJpeg(jpeg)) return new Failure(ROBOT.unsupported_image_format, "the frame's bytes are no JPEG file");
  return { camera, jpeg };
}

/** `jpeg` is kept while the frame waits for a permit or may have to be digested. */
interface GroupFrame {
  digest?: string;
  jpeg?: Uint8Array | undefined;
  frame?: Frame;
}

/** The frames of one observation, decoded before it arrives as far as there are permits. */
export class FrameGroup implements ObservedFrames {
  readonly inBody = false;
  /** Size and number of the messages. */
  bytes = 0;
  messages = 0;
  private readonly cameras: GroupFrame[][];
  private early: EarlyPermits | undefined;
  /** Early permits that are not used yet. */
  private free = 0;
  /** Bytes of `jpeg` that are counted in the ingress budget. */
  private kept = 0;
  private closed = false;

  /** `digests`: whether the observation probably has an id: its frames are then digested as they arrive. */
  constructor(
    private readonly service: Pick<RobotSocketDeps, "admission" | "ingress">,
    private readonly accountId: string,
    private readonly served: Served,
    private readonly digestsNow: boolean,
  ) {
    this.cameras = served.manifest.cameras.map(() => []);
  }

  get counts(): readonly number[] {
    return this.cameras.map((frames) => frames.length);
  }

  get permitsMissing(): number {
    return this.all().filter(({ frame }) => frame === undefined).length;
  }

  get decodeMs(): number {
    return this.all().reduce((sum, { frame }) => sum + (frame?.decodeMs ?? 0), 0);
  }

  digests(): readonly (readonly string[])[] {
    return this.cameras.map((frames) =>
      frames.map(({ digest, jpeg }) => digest ?? frameDigest(present(jpeg, "a frame that was not digested"))),
    );
  }

  /** `expected`: frames that the observation needs. Failure: `engine_unavailable` when the ingress budget is spent. */
  add({ camera, jpeg }: FrameMessage, expected: number): Failure | undefined {
    const { accountId, digestsNow } = this;
    const { admission, ingress } = this.service;
    const { manifest } = this.served;
    if (this.all().length === 0) {
      this.early = admission.takeEarly(accountId, manifest.id, expected);
      this.free = this.early ? expected : 0;
    }
    const taken: GroupFrame = {};
    const model = present(this.served.model, "the model of an open session");
    const frame = this.free > 0 ? model.framePut(jpeg, Bun.hash.crc32(accountId)) : undefined;
    if (digestsNow) taken.digest = frameDigest(jpeg);
    if (frame !== undefined && !(frame instanceof Fault)) {
      this.free -= 1;
      taken.frame = frame;
    }
    if (taken.frame === undefined || !digestsNow) {
      if (ingress.add(accountId, jpeg.length)) {
        taken.frame?.drop();
        return new Failure(ROBOT.engine_unavailable, "too many frames wait already; retry with backoff");
      }
      this.kept += jpeg.length;
      taken.jpeg = jpeg;
    }
    present(this.cameras[camera], "the camera of a checked frame").push(taken);
    return undefined;
  }

  put(model: Model, turn: number): readonly PutFrame[] | Failure {
    const put: PutFrame[] = [];
    for (const [camera, frames] of this.cameras.entries()) {
      for (const [index, taken] of frames.entries()) {
        const frame = taken.frame ?? model.framePut(present(taken.jpeg, "a frame that waits"), turn);
        if (frame instanceof Fault) return failureOf(frame);
        taken.frame = frame;
        taken.jpeg = undefined;
        put.push({ frame, param: `camera ${camera}, frame ${index}` });
      }
    }
    this.giveBytes();
    return put;
  }

  drop(): void {
    for (const { frame } of this.all()) frame?.drop();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.drop();
    this.giveBytes();
    // A frame that is dropped while it is queued keeps its permit until a decode thread takes it from the queue.
    await Promise.all(this.all().map(({ frame }) => frame?.freed()));
    this.early?.release();
  }

  private giveBytes(): void {
    this.service.ingress.subtract(this.accountId, this.kept);
    this.kept = 0;
  }

  private all(): readonly GroupFrame[] {
    return this.cameras.flat();
  }
}

/** Gives back frames that no observation will take; no charge pays for their decode. */
export function discard(
  frames: FrameGroup,
  { log, unpaid }: { readonly log: Log; readonly unpaid: Unpaid },
  { requestId, accountId }: { readonly requestId: string; readonly accountId: string },
): void {
  const closed = frames.close().then(() => unpaid.spend(accountId, frames.decodeMs));
  closed.catch((error: unknown) => log.error("socket fault", { request: requestId, stack: String(error) }));
}

/** The frames of an open session that no observation has taken yet. */
export class FrameIntake {
  /** The next observation probably has an id. */
  digests = false;
  private group: FrameGroup | undefined;

  constructor(
    private readonly service: RobotSocketDeps,
    private readonly accountId: string,
    private readonly served: Served,
  ) {}

  /** `messageBytes`: size of its message. `first`: it is for the session's first observation. */
  add(frame: FrameMessage, messageBytes: number, first: boolean): Failure | undefined {
    const { frames, cameras } = this.served.manifest;
    this.group ??= this.begin();
    this.group.bytes += messageBytes;
    this.group.messages += 1;
    return this.group.add(frame, cameras.length * (first ? frames.first : frames.later));
  }

  take(): FrameGroup {
    const taken = this.group ?? this.begin();
    this.group = undefined;
    return taken;
  }

  private begin(): FrameGroup {
    return new FrameGroup(this.service, this.accountId, this.served, this.digests);
  }
}
