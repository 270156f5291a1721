/**
 * The engine as the service sees it: models, frames, runs. No tensor crosses this line.
 *
 * Implemented once, over the native library (native.ts); the device `echo` runs no model and answers zeros.
 * All methods return at once; work happens on native threads. `Failure` codes that come out of here:
 * `invalid_image`, `instruction_too_long`, `engine_unavailable`, `model_failure`.
 */
import type { Manifest } from "../bundle/manifest.ts";
import type { Failure } from "../error.ts";

/** A verified bundle: its manifest and an absolute path for each file that the manifest lists. */
export interface Bundle {
  readonly manifest: Manifest;
  readonly paths: ReadonlyMap<string, string>;
}

export interface LoadOptions {
  readonly bundle: Bundle;
  /** `auto`, `cpu`, `cuda:0`, `tensorrt:0`, `webgpu:0` or `echo`. */
  readonly device: string;
  readonly replicas: number;
  /** Threads inside one run; 1 leaves the other cores to decode and the event loop. */
  readonly threads: number;
}

/** One JPEG on its way to a normalised tensor in page-locked memory. */
export interface Frame {
  /** Undefined once decoded; `invalid_image` with the decoder's reason otherwise. A failed frame needs no drop. */
  readonly decoded: Promise<Failure | undefined>;
  /** Gives the slot back without a run. Allowed at any time before `observe`; a second call does nothing. */
  drop(): void;
}

export interface Observation {
  /** Decoded frames, camera-major, oldest first. They belong to the run from here on. */
  readonly frames: readonly Frame[];
  readonly instruction: string;
  /** The model's state vector in robot units, in the order of the manifest's state columns. */
  readonly state: Float32Array;
  /** Zero-based chunk index in the session. */
  readonly step: number;
  /** 0 to 2^53 − 1. */
  readonly seed: number;
  /** Memory slot of the session on a model with episode memory; absent on the others. */
  readonly slot?: number;
}

/** Microseconds spent at each native station. */
export interface StationMicros {
  readonly decode: number;
  readonly queue: number;
  readonly prefill: number;
  readonly denoise: number;
  readonly encode: number;
}

export interface ChunkResult {
  /** Row-major float32, `rows × columns`, finite, robot units. A view: valid until `commit` or `abort`. */
  readonly actions: Float32Array;
  readonly rows: number;
  readonly columns: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Values that were outside their column's range and were clamped. */
  readonly clamped: number;
  readonly cacheReset: boolean;
  readonly micros: StationMicros;
}

/** One run. Exactly one of `commit` and `abort` must be called after `result` has settled. */
export interface Run {
  readonly result: Promise<ChunkResult | Failure>;
  /**
   * `result` settles with `engine_unavailable` at once; a run that waits never reaches the model, one that runs ends
   * before its next flow step. Does nothing once `result` has settled.
   */
  cancel(): void;
  /** Keeps the new episode memory and gives the result slot back. */
  commit(): void;
  /** Forgets the new episode memory and gives the result slot back. */
  abort(): void;
}

export interface Model {
  readonly manifest: Manifest;
  /** The device that the model runs on, for example `cpu` or `echo`. */
  readonly device: string;
  /** Providers that were tried before it, with the reason why each was refused. */
  readonly refused: readonly { device: string; reason: string }[];
  /** Prompt tokens of an observation with this instruction and `frames` frames: image, text and state tokens. */
  measure(instruction: string, frames: number): number | Failure;
  /** `jpeg` is copied before this returns. `engine_unavailable` when all frame slots are taken. */
  framePut(camera: number, jpeg: Uint8Array): Frame | Failure;
  observe(observation: Observation): Run | Failure;
  /** Frees the memory slot of an ended session (models with episode memory). */
  sessionDrop(slot: number): void;
  unload(): Promise<void>;
}

export interface EngineStats {
  /** Heap allocations by our own library since it was opened. */
  readonly allocations: number;
  /** Heap allocations inside ONNX Runtime during the last run; −1 when nothing counts them (see bench/memory.ts). */
  readonly runtimeAllocationsLast: number;
  readonly framesFree: number;
  readonly chunksFree: number;
  readonly framesDecoded: number;
  readonly framesRefused: number;
  readonly chunksRun: number;
  readonly chunksFailed: number;
  readonly chunksCancelled: number;
  readonly valuesClamped: number;
  /** Bytes of tensor memory that are page-locked, and bytes in all. */
  readonly lockedBytes: number;
  readonly tensorBytes: number;
}

export interface Engine {
  readonly version: string;
  /** Version text of the ONNX Runtime and of libjpeg-turbo in use. */
  readonly runtimeVersion: string;
  readonly jpegVersion: string;
  /** Resolves when the model has run once on every replica. `engine_unavailable` says why it cannot be served. */
  load(options: LoadOptions): Promise<Model | Failure>;
  stats(): EngineStats;
  /** Cancels what runs, joins every native thread. */
  close(): Promise<void>;
}
