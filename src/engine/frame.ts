/** A frame over its slot in the native library. */
import { assert, present } from "../std/assert.ts";
import { STATUS } from "./abi.ts";
import type { Channel } from "./channel.ts";
import type { Frame } from "./engine.ts";
import { busy, Fault, unloading } from "./fault.ts";

/** What the native side returns when the completion of a frame comes later. */
const LATER = 1;

export class NativeFrame implements Frame {
  decodeMs = 0;
  private isTaken = false;
  private asked: Promise<Fault | undefined> | undefined;
  private free: Promise<void> | undefined;

  constructor(
    private readonly channel: Channel,
    private readonly owner: { readonly isLoaded: boolean },
    private readonly model: number,
    readonly ticket: number,
  ) {}

  decoded(): Promise<Fault | undefined> {
    this.asked ??= this.watch();
    return this.asked;
  }

  drop(): void {
    this.free ??= this.freeing();
  }

  freed(): Promise<void> {
    return present(this.free, "a frame that was dropped, or that an inference has taken");
  }

  /** An inference has taken the slot. */
  taken(): void {
    assert(this.free === undefined, "a frame goes into one inference");
    this.isTaken = true;
    this.free = Promise.resolve();
  }

  private watch(): Promise<Fault | undefined> {
    assert(!this.isTaken, "the inference of a frame tells how it was decoded");
    if (this.free !== undefined) return this.free.then(() => dropped());
    if (!this.owner.isLoaded) return Promise.resolve(unloading());
    const { calls, engine } = this.channel;
    const status = calls.tendon_frame_watch(engine, this.model, this.ticket);
    if (status !== LATER) return Promise.resolve(this.ended(status));
    return new Promise((settle) => this.channel.wait(this.ticket, (late) => settle(this.ended(late))));
  }

  private freeing(): Promise<void> {
    if (!this.owner.isLoaded) return Promise.resolve();
    const { calls, engine } = this.channel;
    const later = this.channel.expect(calls.tendon_frame_drop(engine, this.model, this.ticket), "frame_drop");
    if (later !== LATER) {
      this.measure();
      return Promise.resolve();
    }
    if (this.asked !== undefined) return this.asked.then(() => undefined);
    return new Promise((done) =>
      this.channel.wait(this.ticket, () => {
        this.measure();
        done();
      }),
    );
  }

  /** A frame that was dropped while it was decoded is measured too. */
  private measure(): void {
    if (!this.owner.isLoaded) return;
    const { calls, engine } = this.channel;
    const spentUs = calls.tendon_frame_spent(engine, this.model, this.ticket);
    this.decodeMs = this.channel.expect(spentUs, "frame_spent") / 1000;
  }

  private ended(status: number): Fault | undefined {
    this.measure();
    if (status === STATUS.ok) return undefined;
    if (status === STATUS.cancelled) return dropped();
    if (!this.owner.isLoaded) return unloading();
    const fault = undecodable(status, this.channel.errorText(this.ticket, this.model));
    this.drop();
    return fault;
  }
}

function dropped(): Fault {
  return busy("the frame was dropped before its decode");
}

/** Why a frame is not decoded; `reason` is the decoder's. */
export function undecodable(status: number, reason: string): Fault {
  if (status === STATUS.decoder) {
    return new Fault("decoder_failed", "the frame could not be decoded because of a bug", reason);
  }
  if (status === STATUS.size) return new Fault("wrong_size", `the frame is refused: ${reason}`);
  assert(status === STATUS.image, `a decode ends as decoded, refused or dropped, not ${status}`);
  return new Fault("bad_image", `the frame cannot be decoded: ${reason}`);
}
