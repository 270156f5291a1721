/** A loaded model, its frames and its runs, over the native library. */
import type { Manifest } from "../bundle/manifest.ts";
import { Failure } from "../error/core.ts";
import { ROBOT } from "../error/robot.ts";
import { assert } from "../std/assert.ts";
import {
  MemoryState,
  NO_SLOT,
  NO_STEP,
  OBSERVATION_FRAMES_MAX,
  ObserveRequest,
  STATE_VALUES_MAX,
  STATUS,
} from "./abi.ts";
import { type Calls, lastError } from "./binding.ts";
import type { ChunkResult, Frame, Model, Observation, Run } from "./engine.ts";
import type { Channel } from "./native.ts";
import type { ResultSlots } from "./result.ts";

/** One request struct for all calls: the native side reads it before the call returns. */
const request = new DataView(new ArrayBuffer(ObserveRequest.size));
const requestBytes = new Uint8Array(request.buffer);
const requestFrames = new Uint32Array(request.buffer, ObserveRequest.frames, OBSERVATION_FRAMES_MAX);
const requestState = new Float32Array(request.buffer, ObserveRequest.state, STATE_VALUES_MAX);

/** A pointer must not be null, also where a text is empty. */
function bytesOf(text: string): Buffer {
  return Buffer.from(text.length > 0 ? text : "\0");
}

function busy(what: string): Failure {
  return new Failure(ROBOT.engine_unavailable, `the service is busy: ${what}; retry in a moment`, {
    retryAfterSeconds: 1,
  });
}

function going(): Failure {
  return busy("the model is being unloaded");
}

function tooLong(): Failure {
  return new Failure(
    ROBOT.instruction_too_long,
    "the instruction is longer than the model's prompt; send a shorter one (nothing is cut off)",
  );
}

export class NativeModel implements Model {
  readonly device: string;
  readonly refused: readonly { device: string; reason: string }[];
  readonly replicas: number;
  readonly slots: number;
  private readonly memoryState = new DataView(new ArrayBuffer(MemoryState.size));
  private gone: Promise<void> | undefined;

  constructor(
    private readonly calls: Calls,
    private readonly channel: Channel,
    private readonly results: ResultSlots,
    private readonly ticket: number,
    readonly manifest: Manifest,
    private readonly onGone: (model: NativeModel) => void,
  ) {
    const placement = this.placement();
    this.device = placement.device;
    this.refused = placement.refused;
    this.replicas = placement.replicas;
    this.slots = placement.slots;
  }

  measure({ instruction, state, slot }: Parameters<Model["measure"]>[0]): number | Failure {
    if (!this.isLoaded) return going();
    request.setUint32(ObserveRequest.model, this.ticket, true);
    request.setUint32(ObserveRequest.slot, slot ?? NO_SLOT, true);
    request.setUint32(ObserveRequest.state_len, state?.length ?? 0, true);
    if (state) requestState.set(state);
    const text = bytesOf(instruction);
    const length = instruction ? text.length : 0;
    const tokens = this.calls.tendon_measure(this.channel.engine, requestBytes, text, length);
    if (tokens === STATUS.tooLong) return tooLong();
    this.channel.expect(tokens, "measure");
    return tokens;
  }

  framePut(camera: number, jpeg: Uint8Array, turn: number): Frame | Failure {
    assert(jpeg.length > 0, "an empty frame is refused at the edge");
    if (!this.isLoaded) return going();
    const ticket = this.calls.tendon_frame_put(this.channel.engine, this.ticket, camera, turn, jpeg, jpeg.length);
    if (ticket === STATUS.busy) return busy("all frame slots are taken");
    this.channel.expect(ticket, "frame_put");
    return new NativeFrame(this.calls, this.channel, this, this.ticket, ticket);
  }

  observe(observation: Observation): Run | Failure {
    if (!this.isLoaded) return going();
    const { frames, instruction, state, step, seed, turn, slot, failStep } = observation;
    assert(
      frames.length <= OBSERVATION_FRAMES_MAX && state.length <= STATE_VALUES_MAX,
      "an observation fits its slots",
    );
    request.setUint32(ObserveRequest.model, this.ticket, true);
    request.setUint32(ObserveRequest.slot, slot ?? NO_SLOT, true);
    request.setUint32(ObserveRequest.step, step, true);
    request.setUint32(ObserveRequest.seed_low, seed % 2 ** 32, true);
    request.setUint32(ObserveRequest.seed_high, Math.floor(seed / 2 ** 32), true);
    request.setUint32(ObserveRequest.turn, turn, true);
    request.setUint32(ObserveRequest.fail_step, failStep ?? NO_STEP, true);
    request.setUint32(ObserveRequest.frames_len, frames.length, true);
    request.setUint32(ObserveRequest.state_len, state.length, true);
    const taken = frames.map((frame) => {
      assert(frame instanceof NativeFrame, "frames come from this engine");
      return frame;
    });
    for (const [index, frame] of taken.entries()) requestFrames[index] = frame.ticket;
    requestState.set(state);
    const text = bytesOf(instruction);
    const ticket = this.calls.tendon_observe(this.channel.engine, requestBytes, text, instruction ? text.length : 0);
    if (ticket === STATUS.busy) return busy(lastError(this.calls));
    if (ticket === STATUS.tooLong) return tooLong();
    this.channel.expect(ticket, "observe");
    for (const frame of taken) frame.taken();
    return new NativeRun(this.calls, this.channel, this.results, ticket);
  }

  memory(slot: number): { frames: number; digest: bigint } {
    const state = new Uint8Array(this.memoryState.buffer);
    this.channel.expect(this.calls.tendon_memory(this.channel.engine, this.ticket, slot, state), "memory");
    return {
      frames: this.memoryState.getUint32(MemoryState.frames, true),
      digest: this.memoryState.getBigUint64(MemoryState.digest, true),
    };
  }

  sessionDrop(slot: number): void {
    // With the model its memory is gone.
    if (!this.isLoaded) return;
    this.channel.expect(this.calls.tendon_session_drop(this.channel.engine, this.ticket, slot), "session_drop");
  }

  /** True until it is unloaded: its frame slots go with it. */
  get isLoaded(): boolean {
    return this.gone === undefined && this.channel.isOpen;
  }

  unload(): Promise<void> {
    this.gone ??= new Promise((done) => {
      this.channel.wait(this.ticket, () => {
        this.onGone(this);
        done();
      });
      this.channel.expect(this.calls.tendon_unload(this.channel.engine, this.ticket), "unload");
    });
    return this.gone;
  }

  private placement(): Pick<Model, "device" | "refused" | "replicas" | "slots"> {
    let buffer = Buffer.alloc(1024);
    for (;;) {
      const length = this.calls.tendon_placement(this.channel.engine, this.ticket, buffer, buffer.length);
      this.channel.expect(length, "placement");
      if (length <= buffer.length) return JSON.parse(buffer.toString("utf8", 0, length));
      buffer = Buffer.alloc(length);
    }
  }
}

/** Who holds the native frame slot. */
type Holder = "caller" | "run" | "nobody";

class NativeFrame implements Frame {
  readonly decoded: Promise<Failure | undefined>;
  private holder: Holder = "caller";

  constructor(
    private readonly calls: Calls,
    private readonly channel: Channel,
    private readonly owner: NativeModel,
    private readonly model: number,
    readonly ticket: number,
  ) {
    this.decoded = new Promise((settle) => {
      channel.wait(ticket, (status) => settle(status === STATUS.ok ? undefined : this.failed(status)));
    });
  }

  drop(): void {
    if (this.holder !== "caller") return;
    this.holder = "nobody";
    if (!this.owner.isLoaded) return;
    this.channel.expect(this.calls.tendon_frame_drop(this.channel.engine, this.model, this.ticket), "frame_drop");
  }

  /** A run has taken the slot. */
  taken(): void {
    assert(this.holder === "caller", "a frame goes into one run");
    this.holder = "run";
  }

  private failed(status: number): Failure {
    if (status === STATUS.cancelled) return busy("the frame was dropped before its decode");
    if (!this.owner.isLoaded) return going();
    assert(status === STATUS.image, `a decode ends as decoded, refused or dropped, not ${status}`);
    const reason = this.channel.errorText(this.ticket, this.model);
    this.drop();
    return new Failure(
      ROBOT.invalid_image,
      `the frame cannot be decoded: ${reason}; send a whole baseline or progressive JPEG, 8 bits, grayscale or YCbCr`,
    );
  }
}

class NativeRun implements Run {
  readonly result: Promise<ChunkResult | Failure>;
  readonly released: Promise<void>;
  private readonly outcome = Promise.withResolvers<ChunkResult | Failure>();
  private readonly over = Promise.withResolvers<void>();
  private native: "running" | "done" = "running";
  private settled = false;
  /** It gave a chunk. */
  private gave = false;
  /** What the caller has decided; carried out once the native run has ended. */
  private verdict: "commit" | "abort" | undefined;

  constructor(
    private readonly calls: Calls,
    private readonly channel: Channel,
    private readonly results: ResultSlots,
    private readonly ticket: number,
  ) {
    this.result = this.outcome.promise;
    this.released = this.over.promise;
    channel.wait(ticket, (status) => this.ended(status));
  }

  /** The caller is answered at once; the native run ends before its next flow step and gives its slot back then. */
  cancel(): void {
    if (this.settled) return;
    if (this.channel.isOpen) this.channel.expect(this.calls.tendon_cancel(this.channel.engine, this.ticket), "cancel");
    this.finish(cancelled());
  }

  withdraw(): boolean {
    if (this.settled || !this.channel.isOpen) return false;
    const taken = this.calls.tendon_withdraw(this.channel.engine, this.ticket);
    this.channel.expect(taken, "withdraw");
    if (taken === 1) this.finish(cancelled());
    return taken === 1;
  }

  commit(): void {
    this.decide("commit");
  }

  abort(): void {
    this.decide("abort");
  }

  private decide(verdict: "commit" | "abort"): void {
    assert(this.settled && this.verdict === undefined, "commit or abort is called once, after the result");
    assert(verdict === "abort" || this.gave, "a run that gave no chunk is not committed");
    this.verdict = verdict;
    if (this.native === "done") this.release(verdict);
  }

  private ended(status: number): void {
    this.native = "done";
    if (this.settled) {
      if (this.verdict !== undefined) this.release("abort");
      return;
    }
    this.finish(status === STATUS.ok ? this.results.read(this.ticket) : this.failed(status));
  }

  private finish(result: ChunkResult | Failure): void {
    this.settled = true;
    this.gave = !(result instanceof Failure);
    this.outcome.resolve(result);
  }

  private failed(status: number): Failure {
    if (status === STATUS.cancelled) {
      return cancelled();
    }
    assert(status === STATUS.model, `a run ends as done, cancelled or failed, not ${status}`);
    // The native text names tensors and graph nodes: it is for the log, not for a client.
    return new Failure(
      ROBOT.model_failure,
      "the model failed on this observation; retry, and tell the operator if it goes on",
      {
        detail: this.channel.errorText(this.ticket),
      },
    );
  }

  private release(verdict: "commit" | "abort"): void {
    if (this.channel.isOpen) {
      const { engine } = this.channel;
      if (verdict === "commit") this.channel.expect(this.calls.tendon_commit(engine, this.ticket), "commit");
      else this.channel.expect(this.calls.tendon_abort(engine, this.ticket), "abort");
      this.channel.expect(this.calls.tendon_slot_free(engine, this.ticket), "slot_free");
    }
    this.over.resolve();
  }
}

function cancelled(): Failure {
  return new Failure(ROBOT.engine_unavailable, "the run was cancelled; retry in a moment", { retryAfterSeconds: 1 });
}
