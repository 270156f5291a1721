/** A loaded model over the native library. */
import { assert } from "../std/assert.ts";
import {
  CHUNK_VALUES_MAX,
  FAULT,
  NO_SLOT,
  NO_STEP,
  OBSERVATION_FRAMES_MAX,
  ObserveRequest,
  STATE_VALUES_MAX,
  STATUS,
} from "./abi.ts";
import { jsonOf, lastError } from "./binding.ts";
import type { Channel } from "./channel.ts";
import type { Frame, Inference, LoadOptions, LostReplica, Model, Observation, Placement } from "./engine.ts";
import { busy, type Fault, replicaOut, tooLong, unloading } from "./fault.ts";
import { NativeFrame } from "./frame.ts";
import { NativeInference } from "./inference.ts";
import type { ResultSlots } from "./result.ts";

/** One request struct for all calls: the native side reads it before the call returns. */
const request = new DataView(new ArrayBuffer(ObserveRequest.size));
const requestBytes = new Uint8Array(request.buffer);
const requestFrames = new Float64Array(request.buffer, ObserveRequest.frames, OBSERVATION_FRAMES_MAX);
const requestState = new Float32Array(request.buffer, ObserveRequest.state, STATE_VALUES_MAX);
const requestPrefix = new Float32Array(request.buffer, ObserveRequest.prefix, CHUNK_VALUES_MAX);

const NONE = new Float32Array();

/** Never empty, because the pointer must not be null. */
function bytesOf(text: string): Buffer {
  return Buffer.from(text.length > 0 ? text : "\0");
}

export class NativeModel implements Omit<Model, keyof Placement> {
  readonly id: string;
  readonly instructionBytesMax: number;
  private readonly listeners: ((lost: LostReplica) => void)[] = [];
  private gone: Promise<void> | undefined;

  private constructor(
    readonly channel: Channel,
    private readonly results: ResultSlots,
    readonly ticket: number,
    private readonly facts: LoadOptions["bundle"]["manifest"],
    private readonly onGone: () => void,
    public lost: readonly LostReplica[],
  ) {
    this.id = facts.id;
    const longest = channel.calls.tendon_instruction_max(channel.engine, ticket);
    this.instructionBytesMax = channel.expect(longest, "instruction_max");
    channel.replicaOut.set(ticket, () => this.look());
  }

  /** The model of a ticket that is loaded. */
  static of(
    channel: Channel,
    results: ResultSlots,
    ticket: number,
    facts: LoadOptions["bundle"]["manifest"],
    onGone: () => void,
  ): Model {
    const { lost, ...placement } = placementOf(channel, ticket);
    return Object.assign(new NativeModel(channel, results, ticket, facts, onGone, lost), placement);
  }

  whenLost(listener: (lost: LostReplica) => void): void {
    this.listeners.push(listener);
  }

  measure({ instruction, state, slot }: Parameters<Model["measure"]>[0]): number | Fault {
    if (!this.isLoaded) return unloading();
    request.setFloat64(ObserveRequest.model, this.ticket, true);
    request.setUint32(ObserveRequest.slot, slot ?? NO_SLOT, true);
    request.setUint32(ObserveRequest.state_len, state?.length ?? 0, true);
    if (state) requestState.set(state);
    const text = bytesOf(instruction);
    const length = instruction ? text.length : 0;
    const tokens = this.channel.calls.tendon_measure(this.channel.engine, requestBytes, text, length);
    return tokens === STATUS.tooLong ? tooLong() : this.channel.expect(tokens, "measure");
  }

  framePut(jpeg: Uint8Array, turn: number): Frame | Fault {
    assert(jpeg.length > 0, "an empty frame is refused at the edge");
    if (!this.isLoaded) return unloading();
    const { calls, engine } = this.channel;
    const ticket = calls.tendon_frame_put(engine, this.ticket, turn, jpeg, jpeg.length);
    if (ticket === STATUS.busy) return busy("all frame slots are taken");
    this.channel.expect(ticket, "frame_put");
    return new NativeFrame(this.channel, this, this.ticket, ticket);
  }

  observe(observation: Observation): Inference | Fault {
    if (!this.isLoaded) return unloading();
    const { frames, instruction, state, step, seed, turn, slot, failStep, fault } = observation;
    assert(frames.length <= OBSERVATION_FRAMES_MAX, "an observation's frames fit its slots");
    assert(state.length <= STATE_VALUES_MAX, "an observation's state fits its slots");
    request.setFloat64(ObserveRequest.model, this.ticket, true);
    request.setUint32(ObserveRequest.slot, slot ?? NO_SLOT, true);
    request.setUint32(ObserveRequest.step, step, true);
    request.setUint32(ObserveRequest.seed_low, seed % 2 ** 32, true);
    request.setUint32(ObserveRequest.seed_high, Math.floor(seed / 2 ** 32), true);
    request.setUint32(ObserveRequest.turn, turn, true);
    request.setUint32(ObserveRequest.fail_step, failStep ?? NO_STEP, true);
    request.setUint32(ObserveRequest.fault, FAULT[fault ?? "none"], true);
    request.setUint32(ObserveRequest.frames_len, frames.length, true);
    request.setUint32(ObserveRequest.state_len, state.length, true);
    const taken = frames.filter((frame) => frame instanceof NativeFrame);
    assert(taken.length === frames.length, "frames come from this engine");
    for (const [index, frame] of taken.entries()) requestFrames[index] = frame.ticket;
    requestState.set(state);
    const { rows, values } = this.prefix(observation);
    request.setUint32(ObserveRequest.prefix_rows, rows, true);
    requestPrefix.set(values);
    const text = bytesOf(instruction);
    const { calls, engine } = this.channel;
    const ticket = calls.tendon_observe(engine, requestBytes, text, instruction ? text.length : 0);
    if (ticket === STATUS.busy) return busy(lastError(calls));
    if (ticket === STATUS.tooLong) return tooLong();
    if (ticket === STATUS.lost) return replicaOut();
    this.channel.expect(ticket, "observe");
    for (const frame of taken) frame.taken();
    return new NativeInference(this.channel, this.results, ticket);
  }

  /** The rows that the chunk continues. The transport has checked them: here wrong ones are a bug. */
  private prefix({ prefix: values = NONE }: Observation): { rows: number; values: Float32Array } {
    const { columns, prefix: most = 0 } = this.facts.action;
    const rows = values.length / columns.length;
    assert(Number.isInteger(rows) && rows <= most, `a chunk continues whole rows, ${most} at most`);
    return { rows, values };
  }

  sessionDrop(slot: number): void {
    // Unloading has freed the memory.
    if (!this.isLoaded) return;
    this.channel.expect(this.channel.calls.tendon_session_drop(this.channel.engine, this.ticket, slot), "session_drop");
  }

  /** False from `unload` on: the frame slots are freed with the model. */
  get isLoaded(): boolean {
    return this.gone === undefined && this.channel.isOpen;
  }

  unload(): Promise<void> {
    this.gone ??= new Promise((done) => {
      this.channel.wait(this.ticket, () => {
        this.channel.replicaOut.delete(this.ticket);
        this.onGone();
        done();
      });
      this.channel.expect(this.channel.calls.tendon_unload(this.channel.engine, this.ticket), "unload");
    });
    return this.gone;
  }

  /** Tells who listens of the replicas that are newly lost. */
  private look(): void {
    if (!this.isLoaded) return;
    const before = new Set(this.lost.map(({ replica }) => replica));
    this.lost = placementOf(this.channel, this.ticket).lost;
    for (const lost of this.lost) {
      if (!before.has(lost.replica)) for (const listener of this.listeners) listener(lost);
    }
  }
}

/** Its placement, and the replicas that are out by now. */
function placementOf(channel: Channel, ticket: number): Placement & Pick<Model, "lost"> {
  const { calls, engine } = channel;
  return jsonOf((to) => channel.expect(calls.tendon_placement(engine, ticket, to, to.length), "placement"));
}
