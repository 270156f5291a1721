/**
 * The engine as the service sees it: models, frames, inferences. No tensors.
 *
 * Implemented once, over the native library (native.ts); the device `echo` runs no model and answers zeros.
 * All methods return at once; work happens on native threads.
 */
import type { DeviceChoice } from "../config/devices.ts";
import type { GpuOptions } from "../config/gpu.ts";
import { LIMITS } from "../limits.ts";
import type { Problem } from "../std/problem.ts";
import type { Stats } from "./abi.ts";
import type { Fault } from "./fault.ts";

/** What the engine takes of a verified bundle. The native library reads the whole manifest; only this is read here. */
interface VerifiedBundle {
  readonly manifest: {
    readonly id: string;
    readonly action: { readonly columns: readonly unknown[]; readonly prefix?: number };
    readonly parity: { readonly unproved?: true };
  };
  /** An absolute path for each file that the manifest lists. */
  readonly paths: ReadonlyMap<string, string>;
}

/** Far longer than loading and proving all bundles takes; for a command that waits for it. */
export const LOAD_MS_MAX = 600_000;

export interface LoadOptions {
  readonly bundle: VerifiedBundle;
  /** `auto`, `cpu`, `cuda:0`, `tensorrt:0`, `webgpu:0` or `echo`; or one for each replica, neither `auto` nor `echo`. */
  readonly device: DeviceChoice;
  /** How it runs on a GPU; undefined: as the CPU computes. */
  readonly gpu?: GpuOptions;
  readonly replicas: number;
  /**
   * Sessions per replica of a model with memory that lie where it computes; undefined: as many as the memory measured there holds, 64
   * at most.
   */
  readonly slots: number | undefined;
  /**
   * Bytes of host memory for parked sessions of a model with memory, over all replicas: as many sessions beside `slots` as fit at their
   * largest. `default`: as many as `slots`, if an eighth of what the machine has available holds them. Absent: none.
   */
  readonly parkedBytesMax?: number | "default" | undefined;
  /** Milliseconds from the begin of an inference after which its replica is taken out; undefined: those of the default `chunk_seconds`. */
  readonly inferenceMsMax?: number | undefined;
  /** Threads inside one inference; undefined: as many as the machine has for it. */
  readonly threads: number | undefined;
  /** Replicas of all models of this process that may compute on the processor, whose cores they share; undefined: those of this one. */
  readonly onProcessor?: number | undefined;
  /** Loads a bundle whose rows nobody has computed too (`parity.unproved`): to be measured, never to be served. */
  readonly unproved?: boolean;
  /**
   * Cases that are played in place of the parity vectors: what each stage computed for case N is written to `N.safetensors` in the folder `out`
   * (native/src/model/stages.rs). The model is never to be served then.
   */
  readonly stages?: {
    readonly out: string;
    /** The file of a prefill graph with more outputs, which the manifest lists too. */
    readonly prefill?: string;
    readonly cases: readonly StagesCase[];
  };
  /** False: no counter of the engine knows of the model, its frames and its inferences. It takes one observation at a time. */
  readonly counted?: boolean;
}

/** An observation whose noise is given. */
interface StagesCase {
  readonly instruction: string;
  /** Absolute paths of JPEG files, in wire order. */
  readonly frames: readonly string[];
  /** Robot units, in the order of the manifest's state columns. */
  readonly state: readonly number[];
  /** `rows` x `width` values, row-major; none for a model without noise. */
  readonly noise: readonly number[];
}

/**
 * The bound of an inference whose answer is given up after `chunkSeconds`: it is cancelled then, and ends before its next flow step. One that
 * goes on for the margin does not end at all.
 */
export function inferenceMsMaxOf(chunkSeconds: number): number {
  return 1_000 * chunkSeconds + LIMITS.runMarginMs;
}

/** One JPEG that becomes a normalised tensor in page-locked memory. */
export interface Frame {
  /**
   * Undefined once decoded. A frame that could not be decoded needs no drop. To be asked only where the
   * answer is needed: `observe` waits for its frames by itself, without waking this thread. Once asked it must be awaited before `observe`.
   */
  decoded(): Promise<Fault | undefined>;
  /** Processor time that its decode took, milliseconds; 0 until that is known, and of a frame that an inference has taken. */
  readonly decodeMs: number;
  /** Frees the slot of a frame that no inference has taken. Allowed at any time; a second call does nothing. */
  drop(): void;
  /** After `drop`: resolves when the slot is free. A decoder may still be at the frame. */
  freed(): Promise<void>;
}

/** What a drill makes go wrong. `hang`: until the process ends. `device`: the replica's device fails. `panic`: native code panics. */
export type DrillFault = "hang" | "device" | "panic";

/** A replica that takes no more work, by its number. */
export interface LostReplica {
  readonly replica: number;
  readonly device: string;
  /** `device_lost`: with all others of its device. `drained`: an operator wanted it. `replica_failed`: it alone. */
  readonly cause: "device_lost" | "drained" | "replica_failed";
  /** For the operator. */
  readonly reason: string;
}

export interface Observation {
  /** Camera-major, oldest first. They belong to the inference from here on, which starts when all are decoded. */
  readonly frames: readonly Frame[];
  readonly instruction: string;
  /** The model's state vector in robot units, in the order of the manifest's state columns. */
  readonly state: Float32Array;
  /**
   * Rows that the chunk continues because they are still being executed, row-major in robot units, absolute and inside their ranges: at most
   * `action.prefix` of the manifest. They are the chunk's first rows; `state` is that of the same moment as the frames. Absent: none.
   */
  readonly prefix?: Float32Array;
  /** Zero-based chunk index in the session. */
  readonly step: number;
  /** 0 to 2^53 − 1. */
  readonly seed: number;
  /** u32, one per account: queued inferences of different numbers alternate, so that one account's many do not delay another's one. */
  readonly turn: number;
  /** Memory slot of the session (replica · slots + slot) on a model with episode memory; absent on the others. */
  readonly slot?: number;
  /** Drill: the inference fails before this flow step. */
  readonly failStep?: number;
  /** Drill: what goes wrong in the engine meanwhile. */
  readonly fault?: DrillFault;
}

/**
 * The stations that a chunk passes, in the order of the work; `timing_ms` has one number for each. `queue` has the wait for the replica and
 * for the session's memory, if that was parked.
 */
export const STATIONS = ["decode", "queue", "prefill", "denoise", "encode"] as const;

/** What the native library times, microseconds. */
interface InferenceMicros {
  /** The time from its last frame's tensor to the model's start: how long its frames were there. */
  readonly decoded: number;
  /** The time from `observe` to the model's start, the way of a parked session's memory included. */
  readonly queue: number;
  readonly prefill: number;
  readonly denoise: number;
  readonly encode: number;
  /** The parts of `prefill` and `denoise` in which the device worked, by its own events; absent where it does not tell. */
  readonly device?: { readonly prefill: number; readonly denoise: number } | undefined;
}

export interface ChunkResult {
  /** Row-major float32, `rows × columns`, finite, robot units. */
  readonly actions: Float32Array;
  readonly rows: number;
  readonly columns: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Values that were outside their column's range and were clamped. */
  readonly clamped: number;
  readonly cacheReset: boolean;
  /** Observations that ran together, this one included. */
  readonly batch: number;
  /** Which replica ran it: `devices` of its model has the device. */
  readonly replica: number;
  readonly micros: InferenceMicros;
}

/** One inference. Exactly one of `commit` and `abort` must be called after `result` has settled. */
export interface Inference {
  readonly result: Promise<ChunkResult | Fault>;
  /** The place of the first frame that cannot be decoded, once `result` says so. */
  readonly badFrame: number | undefined;
  /** Processor time that the decodes of its frames took, milliseconds; final once `released` has resolved. */
  readonly decodeMs: number;
  /** What the model worked on it, milliseconds, however it ended; final once `released` has resolved. */
  readonly modelMs: number;
  /** Resolves when it has ended in the engine and `commit` or `abort` is done: the session's next inference may start. */
  readonly released: Promise<void>;
  /** Cancels it if the model has not started on it, and returns whether it did. */
  withdraw(): boolean;
  /** `result` settles as `cancelled` at once; one that the model has begun ends before its next flow step. Does nothing once it has settled. */
  cancel(): void;
  /** Keeps the new episode memory and frees the result slot. */
  commit(): void;
  /** Discards the new episode memory and frees the result slot. */
  abort(): void;
}

/** What a model on an NVIDIA GPU asks of the driver beside ONNX Runtime. What is refused costs what it was for, never the model. */
interface DriverUse {
  /** Host memory of one replica that the driver copies from and to without a buffer between, bytes. */
  readonly registeredBytes: number;
  /** Why it does not so for all that the device reads. */
  readonly registrationReason?: string | undefined;
  /** Why the device does not time the inferences. */
  readonly timesReason?: string | undefined;
  /** Our kernels advance its latents and decode its chunks. */
  readonly kernels: boolean;
  /** Why they do not, though `own_kernels` asks for it. */
  readonly kernelsReason?: string | undefined;
}

/** How the sessions of a model share memory. */
interface SessionMemory {
  /** Slots whose memory lies where the model computes. The sessions of other slots are parked in host memory until they are used. */
  readonly places: number;
  /** The places in the memory of a device; those of a CPU are in the host's. */
  readonly placesOnDevice: number;
  /** Why sessions of a replica on a device lie in host memory, from which each of their observations is copied. */
  readonly hostMemoryBecause?: string | undefined;
  /** Bytes of one session at most; 0 on a model without memory. */
  readonly slotBytes: number;
  /**
   * What was free once every replica had computed, and how much of it stays free, bytes. `of`: `machine`, `cgroup` or `gpu`; `unknown` is a
   * stated number where a device does not tell. Absent on a model without memory.
   */
  readonly room?: { readonly of: string; readonly free: number; readonly reserve: number } | undefined;
}

/** The devices that a model runs on, and why not on others, in the words of the native library (native/src/model.rs). */
export interface Placement {
  /** The device that the model runs on, for example `cpu` or `echo`; of several their names, with commas. */
  readonly device: string;
  /** The device of each replica. */
  readonly devices: readonly string[];
  /** Providers that were tried before it, with the reason why each was refused. */
  readonly refused: readonly { device: string; reason: string }[];
  /** The largest difference of each of the bundle's parity vectors over all replicas, in robot units; none on `echo`. */
  readonly parity: readonly number[];
  /**
   * How the steps of a flow are run: by the host one by one, as one graph, or as one whose kernels the device launches at once. `none`:
   * the model has no flow.
   */
  readonly flow: "none" | "steps" | "whole" | "captured";
  /** Why a device runs its steps one by one, a sentence; null where it does not, and on a CPU, where nothing waits between them. */
  readonly flowReason: string | null;
  /** Tensors of one replica, of those on devices the one with the most, that stay in the device's memory, bytes; 0 on a CPU. */
  readonly deviceBytes: number;
  /** Bytes that one observation alone copies between the host and the device; 0 on a CPU. */
  readonly copies: { readonly toDevice: number; readonly fromDevice: number };
  /** What the replica with the most `deviceBytes` has; absent where it runs on no NVIDIA GPU. */
  readonly driverDevice?: DriverUse | undefined;
  /**
   * What is read of the bundle's weight files in the memory of devices, bytes: what lies there once for all graphs and replicas (of it,
   * what this load has copied: the rest was there for another model), and what sessions have copied for themselves. All 0 on a CPU, which
   * reads the files, and of a bundle without them. `reason`: why it is not shared.
   */
  readonly deviceWeights: {
    readonly sharedBytes: number;
    readonly copiedBytes: number;
    readonly ownBytes: number;
    readonly reason?: string | undefined;
  };
  readonly replicas: number;
  /** Session slots over all replicas; 0 on a model without episode memory. */
  readonly slots: number;
  readonly sessionMemory: SessionMemory;
}

export interface Model extends Placement {
  /** The id of its bundle. */
  readonly id: string;
  /** Replicas that take no more work: an inference hung, their thread ended or their device failed. */
  readonly lost: readonly LostReplica[];
  /** Calls the listener for each replica that is lost from now on. */
  whenLost(listener: (lost: LostReplica) => void): void;
  /** A longer instruction, in UTF-8, is refused by `measure` unread. */
  readonly instructionBytesMax: number;
  /** Prompt tokens of an observation: image, text and state. Without `state`: the most it can have; without `slot`: a first one. */
  measure(what: {
    readonly instruction: string;
    readonly state?: Float32Array;
    readonly slot?: number;
  }): number | Fault;
  /** `jpeg` is copied before this returns. `busy` when all frame slots are taken. */
  framePut(jpeg: Uint8Array, turn: number): Frame | Fault;
  /** One inference at a time per slot: the next one only after the last one's `released`. */
  observe(observation: Observation): Inference | Fault;
  /** Empties a slot's memory. Its last inference must have been released. */
  sessionDrop(slot: number): void;
  unload(): Promise<void>;
}

/** The counters of native/src/core/layout.rs, by their names there; −1 for one that nothing counts. */
export type EngineStats = Readonly<Record<Exclude<keyof typeof Stats, "size">, number>>;

/** What a device with replicas holds, and whether it takes work: `draining` ends what it has, `drained` has nothing left. */
export interface DeviceFigures {
  /** The name with CUDA for a GPU with two providers. */
  readonly device: string;
  readonly health: "ready" | "draining" | "drained" | "lost";
  /** Why it is lost. */
  readonly reason: string | null;
  readonly replicas: number;
  readonly replicasOut: number;
  /** Those that are computed now. */
  readonly inferences: number;
  readonly slots: number;
  readonly slotsHeld: number;
  /** Frames that wait for a decoder. */
  readonly framesWaiting: number;
}

export interface Engine {
  readonly version: string;
  /** Version text of the ONNX Runtime and of libjpeg-turbo in use. */
  readonly runtimeVersion: string;
  readonly jpegVersion: string;
  /** Resolves when every replica has computed the bundle's parity vectors. A problem says why it cannot be served. */
  load(options: LoadOptions): Promise<Model | Problem>;
  stats(): EngineStats;
  devices(): readonly DeviceFigures[];
  /**
   * Lets the replicas of a device end what they have; each is lost then, as `drained`. The memory of their slots is gone: no session may
   * need it. A problem where the device has no replica, is lost, or a model has none that works elsewhere.
   */
  drain(device: string): Problem | undefined;
  /** Cancels what runs, gives up what loads, joins every native thread but those that hang. */
  close(): Promise<void>;
}
