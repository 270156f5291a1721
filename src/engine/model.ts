/** A loaded model over the native library. */
import type { Manifest } from "../bundle/manifest.ts";
import { assert } from "../std/assert.ts";
import type { Failure } from "../std/failure.ts";
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
import { lastError } from "./binding.ts";
import { busy, replicaOut, tooLong, unloading } from "./busy.ts";
import type { Channel } from "./channel.ts";
import type { Frame, LostReplica, Model, Observation, Run } from "./engine.ts";
import { NativeFrame } from "./frame.ts";
import type { ResultSlots } from "./result.ts";
import { NativeRun } from "./run.ts";

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

/** What `tendon_placement` writes. */
interface Placement
  extends Pick<Model, "device" | "devices" | "refused" | "parity" | "flow" | "replicas" | "slots" | "lost"> {
  readonly flow_reason: string | null;
  readonly device_bytes: number;
  readonly copies: { readonly to_device: number; readonly from_device: number };
  readonly driver_device: {
    readonly registered_bytes: number;
    readonly unregistered: string | null;
    readonly timed: boolean;
    readonly untimed: string | null;
    readonly launched: boolean;
    readonly unlaunched: string | null;
  } | null;
  readonly weights: {
    readonly shared_bytes: number;
    readonly copied_bytes: number;
    readonly own_bytes: number;
    readonly reason: string | null;
  };
  readonly places: number;
  readonly places_on_device: number;
  readonly host_memory_because: string | null;
  readonly slot_bytes: number;
  readonly room: Model["sessionMemory"]["room"] | null;
}

export class NativeModel implements Model {
  readonly device: string;
  readonly devices: readonly string[];
  readonly refused: readonly { device: string; reason: string }[];
  readonly parity: readonly number[];
  readonly flow: Model["flow"];
  readonly flowReason: string | null;
  readonly deviceBytes: number;
  readonly copies: Model["copies"];
  readonly card: Model["card"];
  readonly deviceWeights: Model["deviceWeights"];
  readonly replicas: number;
  readonly slots: number;
  readonly sessionMemory: Model["sessionMemory"];
  private readonly listeners: ((lost: LostReplica) => void)[] = [];
  private known: readonly LostReplica[];
  readonly instructionBytesMax: number;
  private gone: Promise<void> | undefined;

  constructor(
    readonly channel: Channel,
    private readonly results: ResultSlots,
    readonly ticket: number,
    readonly manifest: Manifest,
    private readonly onGone: (model: NativeModel) => void,
  ) {
    const placement = this.placement();
    this.device = placement.device;
    this.devices = placement.devices;
    this.refused = placement.refused;
    this.parity = placement.parity;
    this.flow = placement.flow;
    this.flowReason = placement.flow_reason;
    this.deviceBytes = placement.device_bytes;
    this.copies = { toDevice: placement.copies.to_device, fromDevice: placement.copies.from_device };
    const { driver_device: card } = placement;
    this.card = card
      ? {
          registeredBytes: card.registered_bytes,
          unregistered: card.unregistered ?? undefined,
          timed: card.timed,
          untimed: card.untimed ?? undefined,
          launched: card.launched,
          unlaunched: card.unlaunched ?? undefined,
        }
      : undefined;
    const { shared_bytes: sharedBytes, copied_bytes: copiedBytes, own_bytes: ownBytes, reason } = placement.weights;
    this.deviceWeights = { sharedBytes, copiedBytes, ownBytes, reason: reason ?? undefined };
    this.replicas = placement.replicas;
    this.slots = placement.slots;
    const { places, places_on_device: placesOnDevice, slot_bytes: slotBytes, room } = placement;
    const hostMemoryBecause = placement.host_memory_because ?? undefined;
    this.sessionMemory = { places, placesOnDevice, hostMemoryBecause, slotBytes, room: room ?? undefined };
    const longest = channel.calls.tendon_instruction_max(channel.engine, ticket);
    this.instructionBytesMax = channel.expect(longest, "instruction_max");
    this.known = placement.lost;
    channel.replicaOut.set(ticket, () => this.look());
  }

  get lost(): readonly LostReplica[] {
    return this.known;
  }

  whenLost(listener: (lost: LostReplica) => void): void {
    this.listeners.push(listener);
  }

  measure({ instruction, state, slot }: Parameters<Model["measure"]>[0]): number | Failure {
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

  framePut(jpeg: Uint8Array, turn: number): Frame | Failure {
    assert(jpeg.length > 0, "an empty frame is refused at the edge");
    if (!this.isLoaded) return unloading();
    const { calls, engine } = this.channel;
    const ticket = calls.tendon_frame_put(engine, this.ticket, turn, jpeg, jpeg.length);
    if (ticket === STATUS.busy) return busy("all frame slots are taken");
    this.channel.expect(ticket, "frame_put");
    return new NativeFrame(this.channel, this, this.ticket, ticket);
  }

  observe(observation: Observation): Run | Failure {
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
    return new NativeRun(this.channel, this.results, ticket);
  }

  /** The rows that the chunk continues. Whoever takes them from a robot has checked them: here wrong ones are a bug. */
  private prefix({ prefix: values = NONE }: Observation): { rows: number; values: Float32Array } {
    const { columns, prefix: most = 0 } = this.manifest.action;
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
        this.onGone(this);
        done();
      });
      this.channel.expect(this.channel.calls.tendon_unload(this.channel.engine, this.ticket), "unload");
    });
    return this.gone;
  }

  /** Tells who listens of the replicas that are newly lost. */
  private look(): void {
    if (!this.isLoaded) return;
    const before = new Set(this.known.map(({ replica }) => replica));
    this.known = this.placement().lost;
    for (const lost of this.known) {
      if (!before.has(lost.replica)) for (const listener of this.listeners) listener(lost);
    }
  }

  private placement(): Placement {
    let buffer = Buffer.alloc(1024);
    for (;;) {
      const length = this.channel.calls.tendon_placement(this.channel.engine, this.ticket, buffer, buffer.length);
      this.channel.expect(length, "placement");
      if (length <= buffer.length) return JSON.parse(buffer.toString("utf8", 0, length));
      buffer = Buffer.alloc(length);
    }
  }
}
