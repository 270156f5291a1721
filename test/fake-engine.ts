/**
 * An engine in this process for tests above it: no threads, no models, every outcome decided by the test. It counts what
 * is held, so that a test can say that nothing leaked.
 */
import type { Manifest } from "../src/bundle/manifest.ts";
import type {
  ChunkResult,
  Engine,
  EngineStats,
  Frame,
  LoadOptions,
  Model,
  Observation,
  Run,
} from "../src/engine/engine.ts";
import { Failure } from "../src/error.ts";

/** How the fake answers; a test replaces members at any time. */
export interface Script {
  /** The outcome of one frame's decode. */
  decode: (jpeg: Uint8Array) => Promise<Failure | undefined>;
  /** The outcome of one run, unless it is cancelled before. */
  run: (observation: Observation) => Promise<ChunkResult | Failure>;
  /** Refusals at once. */
  framePut: () => Failure | undefined;
  observe: () => Failure | undefined;
  measure: (instruction: string, frames: number) => number | Failure;
}

export class FakeEngine implements Engine {
  readonly version = "fake";
  readonly runtimeVersion = "none";
  readonly jpegVersion = "none";
  /** Frames put and neither dropped, refused nor handed to a run. */
  framesHeld = 0;
  /** Runs that are neither committed nor aborted. */
  runsHeld = 0;
  readonly observations: Observation[] = [];
  readonly cameras: number[] = [];
  commits = 0;
  aborts = 0;
  cancels = 0;
  script: Script = {
    decode: async () => undefined,
    run: async (observation) => this.chunk(observation),
    framePut: () => undefined,
    observe: () => undefined,
    measure: (instruction, frames) => {
      const tokens = instruction.split(/\s+/).length + frames;
      return tokens <= 1000 ? tokens : new Failure("instruction_too_long", "over 1000 words");
    },
  };

  private readonly manifests = new WeakMap<Observation, Manifest>();

  async load({ bundle, device }: LoadOptions): Promise<Model> {
    return this.model(bundle.manifest, device);
  }

  model(manifest: Manifest, device = "fake"): Model {
    return {
      manifest,
      device,
      refused: [],
      measure: (instruction, frames) => this.script.measure(instruction, frames),
      framePut: (camera, jpeg) => this.framePut(camera, jpeg),
      observe: (observation) => this.observe(manifest, observation),
      sessionDrop: () => {},
      unload: async () => {},
    };
  }

  /** A chunk whose values are row + column / 100. */
  chunk(observation: Observation): ChunkResult {
    const manifest = this.manifests.get(observation);
    const rows = manifest?.action.rows ?? 0;
    const columns = manifest?.action.columns.length ?? 0;
    return {
      actions: Float32Array.from({ length: rows * columns }, (_, i) => Math.floor(i / columns) + (i % columns) / 100),
      rows,
      columns,
      promptTokens: 100,
      cachedTokens: 0,
      clamped: 0,
      cacheReset: false,
      micros: { decode: 1001, queue: 2002, prefill: 3003, denoise: 4004, encode: 5 },
    };
  }

  stats(): EngineStats {
    return {
      allocations: 0,
      runtimeAllocationsLast: -1,
      framesFree: 0,
      chunksFree: 0,
      framesDecoded: this.cameras.length,
      framesRefused: 0,
      chunksRun: this.observations.length,
      chunksFailed: 0,
      chunksCancelled: this.cancels,
      valuesClamped: 0,
      lockedBytes: 0,
      tensorBytes: 0,
    };
  }

  async close(): Promise<void> {}

  private framePut(camera: number, jpeg: Uint8Array): Frame | Failure {
    const refusal = this.script.framePut();
    if (refusal) return refusal;
    this.cameras.push(camera);
    this.framesHeld += 1;
    let held = true;
    const release = () => {
      if (held) this.framesHeld -= 1;
      held = false;
    };
    const decoded = this.script.decode(jpeg).then((failure) => {
      if (failure) release();
      return failure;
    });
    return { decoded, drop: release };
  }

  private observe(manifest: Manifest, observation: Observation): Run | Failure {
    const refusal = this.script.observe();
    if (refusal) return refusal;
    this.manifests.set(observation, manifest);
    this.observations.push(observation);
    for (const frame of observation.frames) frame.drop();
    this.runsHeld += 1;
    const cancelled = Promise.withResolvers<Failure>();
    let settled = false;
    const result = Promise.race([this.script.run(observation), cancelled.promise]).finally(() => {
      settled = true;
    });
    let ended = false;
    const end = () => {
      if (!settled || ended) throw new Error("a run is committed or aborted once, after its result");
      ended = true;
      this.runsHeld -= 1;
    };
    return {
      result,
      cancel: () => {
        if (settled) return;
        this.cancels += 1;
        // As the native engine: the result settles at once, whatever still runs.
        cancelled.resolve(new Failure("engine_unavailable", "the run was cancelled"));
      },
      commit: () => {
        end();
        this.commits += 1;
      },
      abort: () => {
        end();
        this.aborts += 1;
      },
    };
  }
}

/** A run that goes on until it is cancelled. */
export function runUntilCancelled(): Promise<never> {
  return new Promise(() => {});
}
