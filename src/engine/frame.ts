/** A frame over its slot in the native library. */
import { Failure } from "../error/core.ts";
import { EVERY } from "../error/every-route.ts";
import { ROBOT } from "../error/robot.ts";
import { assert } from "../std/assert.ts";
import { STATUS } from "./abi.ts";
import { busy, unloading } from "./busy.ts";
import type { Channel } from "./channel.ts";
import type { Frame } from "./engine.ts";

/** Who has to free the native frame slot. */
type Holder = "caller" | "run" | "nobody";

export class NativeFrame implements Frame {
  readonly decoded: Promise<Failure | undefined>;
  decodeMs = 0;
  private holder: Holder = "caller";

  constructor(
    private readonly channel: Channel,
    private readonly owner: { readonly isLoaded: boolean },
    private readonly model: number,
    readonly ticket: number,
  ) {
    this.decoded = new Promise((settle) => {
      channel.wait(ticket, (status) => {
        this.measure();
        settle(status === STATUS.ok ? undefined : this.failed(status));
      });
    });
  }

  drop(): void {
    if (this.holder !== "caller") return;
    this.holder = "nobody";
    if (!this.owner.isLoaded) return;
    const { calls, engine } = this.channel;
    this.channel.expect(calls.tendon_frame_drop(engine, this.model, this.ticket), "frame_drop");
  }

  /** A run has taken the slot. */
  taken(): void {
    assert(this.holder === "caller", "a frame goes into one run");
    this.holder = "run";
  }

  /** Also of a frame that was dropped while it was decoded. */
  private measure(): void {
    if (!this.owner.isLoaded) return;
    const { calls, engine } = this.channel;
    const spentUs = calls.tendon_frame_spent(engine, this.model, this.ticket);
    this.decodeMs = this.channel.expect(spentUs, "frame_spent") / 1000;
  }

  private failed(status: number): Failure {
    if (status === STATUS.cancelled) return busy("the frame was dropped before its decode");
    if (!this.owner.isLoaded) return unloading();
    if (status === STATUS.panic) {
      // The native side has freed the slot.
      this.holder = "nobody";
      return new Failure(
        EVERY.internal_error,
        "the frame could not be decoded because of a bug; report the request's id",
        {
          detail: "the native decoder panicked",
        },
      );
    }
    assert(status === STATUS.image, `a decode ends as decoded, refused or dropped, not ${status}`);
    const reason = this.channel.errorText(this.ticket, this.model);
    this.drop();
    return new Failure(
      ROBOT.invalid_image,
      `the frame cannot be decoded: ${reason}; send a whole baseline or progressive JPEG, 8 bits, grayscale or YCbCr`,
    );
  }
}
