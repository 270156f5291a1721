/** The frames of an open session that no observation has taken yet. */

import { present } from "../../std/assert.ts";
import type { Failure } from "../../std/failure.ts";
import type { Served } from "../catalog.ts";
import { FrameGroup, type ReceivedFrame } from "./frames.ts";
import type { RobotSocketDeps } from "./sockets.ts";

/** The frames that an observation takes, and the size and number of their messages. */
export interface TakenFrames {
  readonly frames: FrameGroup;
  readonly bytes: number;
  readonly messages: number;
}

export class FrameIntake {
  /** Whether the next observation probably has an id: its frames are then digested as they arrive. */
  digests = false;
  private group: FrameGroup | undefined;
  private bytes = 0;
  private messages = 0;

  constructor(
    private readonly service: RobotSocketDeps,
    private readonly accountId: string,
    private readonly served: Served,
  ) {}

  /** `messageBytes`: size of its message. `first`: it is for the session's first observation. */
  add(frame: ReceivedFrame, messageBytes: number, first: boolean): Failure | undefined {
    const { frames, cameras } = this.served.manifest;
    this.bytes += messageBytes;
    this.messages += 1;
    this.group ??= this.begin();
    return this.group.add(frame, cameras.length * (first ? frames.first : frames.later));
  }

  take(): TakenFrames {
    const taken = { frames: this.group ?? this.begin(), bytes: this.bytes, messages: this.messages };
    this.group = undefined;
    this.bytes = 0;
    this.messages = 0;
    return taken;
  }

  private begin(): FrameGroup {
    const { manifest, model } = this.served;
    const { admission, ingress } = this.service;
    return new FrameGroup({
      accountId: this.accountId,
      turn: Bun.hash.crc32(this.accountId),
      modelId: manifest.id,
      model: present(model, "the model of an open session"),
      cameras: manifest.cameras.length,
      admission,
      ingress,
      digests: this.digests,
    });
  }
}
