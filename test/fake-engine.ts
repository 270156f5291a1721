/**
 * An engine in this process for tests above it: no threads, no models, every outcome decided by the test. It counts what
 * is held, so that a test can say that nothing leaked.
 */
import type { Manifest } from "../src/bundle/manifest.ts";
import { deviceText } from "../src/config/devices.ts";
import { Stats } from "../src/engine/abi.ts";
import type {
  ChunkResult,
  DeviceFigures,
  Engine,
  EngineStats,
  Frame,
  Inference,
  LoadOptions,
  LostReplica,
  Model,
  Observation,
} from "../src/engine/engine.ts";
import { Fault } from "../src/engine/fault.ts";
import { present } from "../src/std/assert.ts";
import type { Problem } from "../src/std/problem.ts";
import type { FakeMemory } from "./engine/memory.ts";

/** How the fake answers; a test replaces members at any time. */
export interface Script {
  /** The outcome of one frame's decode. */
  decode: (jpeg: Uint8Array) => Promise<Fault | undefined>;
  /** Resolves when the model takes the inference from its queue. */
  start: (observation: Observation) => Promise<void>;
  /** The outcome of one inference, unless it is cancelled before. */
  run: (observation: Observation) => Promise<ChunkResult | Fault>;
  /** Refusals at once. */
  framePut: () => Fault | undefined;
  observe: () => Fault | undefined;
  measure: (instruction: string) => number | Fault;
}

/** A model beside what its bundle says. */
export interface KnownModel extends Model {
  readonly manifest: Manifest;
}

const PROMPT_TOKENS = 100;

/** A session slot: what it has committed, and what its last inference would add. */
interface FakeSlot {
  committed: string[];
  staged: string | undefined;
  running: boolean;
}

export class FakeEngine implements Engine {
  readonly version = "fake";
  readonly runtimeVersion = "none";
  readonly jpegVersion = "none";
  /** Frames put and neither dropped, refused nor handed to an inference. */
  framesHeld = 0;
  /** Runs that are neither committed nor aborted. */
  runsHeld = 0;
  /** Observations of inferences whose frames were decoded. */
  readonly observations: Observation[] = [];
  framesPut = 0;
  commits = 0;
  aborts = 0;
  cancels = 0;
  script = this.working();

  /** Every later call works: what the test has made of `script` is forgotten. */
  mend(): void {
    this.script = this.working();
  }

  private working(): Script {
    return {
      decode: async () => undefined,
      start: async () => {},
      run: async (observation) => this.chunk(observation),
      framePut: () => undefined,
      observe: () => undefined,
      measure: (instruction) => {
        const tokens = instruction.split(/\s+/).length;
        // A prompt has the number of tokens that an inference reports, whatever its words are.
        return tokens <= 999 ? PROMPT_TOKENS : new Fault("instruction_too_long", "over 999 words");
      },
    };
  }

  /** What the decode of one frame takes, processor milliseconds. */
  decodeMs = 0;
  /** The model's work for each inference, in milliseconds. */
  modelMs = 0;

  /** Slots of a model that is stateful, if its test asks for another number than this. */
  slotsPerModel = 4;
  /** The longest instruction of every model. */
  instructionBytesMax = Number.POSITIVE_INFINITY;
  /** The slots that one account can have: the last one is kept for another. */
  get slotsPerAccount(): number {
    return this.slotsPerModel - 1;
  }

  /** Replicas of each model, which share its slots. */
  replicasPerModel = 1;
  private readonly manifests = new WeakMap<Observation, Manifest>();
  /** A function for each frame that gives it to an inference, which waits for its decode. */
  private readonly taken = new WeakMap<Frame, () => Promise<Fault | undefined>>();
  private readonly losses = new Map<string, (lost: Omit<LostReplica, "device">) => void>();

  async load({ bundle, device }: LoadOptions): Promise<Model> {
    return this.model(bundle.manifest as Manifest, deviceText(device));
  }

  /** What devices say of themselves. */
  readonly figures: DeviceFigures[] = [];
  devices(): readonly DeviceFigures[] {
    return this.figures;
  }

  /** Devices that were drained. */
  readonly drains: string[] = [];
  drain(device: string): Problem | undefined {
    this.drains.push(device);
    return undefined;
  }

  /** Devices of a model's replicas in their order; replicas beyond the list run on its last device. */
  devicesPerModel: readonly string[] = [];

  model(manifest: Manifest, device = "fake"): KnownModel & FakeMemory {
    const devices = Array.from(
      { length: this.replicasPerModel },
      (_, replica) => this.devicesPerModel[replica] ?? this.devicesPerModel.at(-1) ?? device,
    );
    const slots = Array.from({ length: manifest.stateful ? this.slotsPerModel : 0 }, emptySlot);
    const lost: LostReplica[] = [];
    const listeners: ((lost: LostReplica) => void)[] = [];
    this.losses.set(manifest.id, (one) => {
      const placed = { ...one, device: present(devices[one.replica], "a replica") };
      lost.push(placed);
      for (const listener of listeners) listener(placed);
    });
    const longest = () => this.instructionBytesMax;
    return {
      id: manifest.id,
      manifest,
      device,
      devices,
      refused: [],
      parity: [],
      flow: "steps",
      flowReason: null,
      deviceBytes: 0,
      copies: { toDevice: 0, fromDevice: 0 },
      deviceWeights: { sharedBytes: 0, copiedBytes: 0, ownBytes: 0, reason: undefined },
      replicas: this.replicasPerModel,
      lost,
      whenLost: (listener) => listeners.push(listener),
      slots: slots.length,
      sessionMemory: {
        places: slots.length,
        placesOnDevice: 0,
        hostMemoryBecause: undefined,
        slotBytes: slots.length > 0 ? 1 : 0,
        room: undefined,
      },
      get instructionBytesMax() {
        return longest();
      },
      measure: ({ instruction }) => this.script.measure(instruction),
      framePut: (jpeg) => this.framePut(jpeg),
      observe: (observation) => this.observe(manifest, observation, slotOf(slots, manifest, observation.slot)),
      memory: (slot) => {
        const { committed } = present(slots[slot], "a slot");
        return { frames: committed.length, digest: BigInt(Bun.hash(committed.join("\n"))) };
      },
      sessionDrop: (slot) => {
        if (slots[slot]?.running !== false) throw new Error("a slot is dropped after its run");
        slots[slot] = emptySlot();
      },
      unload: async () => {},
    };
  }

  /** A replica of a model is out. */
  lose(id: string, replica: number, reason: string, cause: LostReplica["cause"] = "replica_failed"): void {
    present(this.losses.get(id), "a loaded model")({ replica, reason, cause });
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
      promptTokens: PROMPT_TOKENS,
      cachedTokens: 0,
      clamped: 0,
      replica: 0,
      cacheReset: false,
      batch: 1,
      micros: { decoded: 2002, queue: 2002, prefill: 3003, denoise: 4004, encode: 5 },
    };
  }

  /** A run that came to nothing. */
  fault(detail: string): Fault {
    return new Fault("model_failed", "the model failed", detail);
  }

  stats(): EngineStats {
    const { size: _, ...names } = Stats;
    const none = Object.fromEntries(Object.keys(names).map((name) => [name, 0])) as EngineStats;
    const { framesPut, observations, cancels } = this;
    return { ...none, frames_decoded: framesPut, chunks_run: observations.length, chunks_cancelled: cancels };
  }

  async close(): Promise<void> {}

  private framePut(jpeg: Uint8Array): Frame | Fault {
    const refusal = this.script.framePut();
    if (refusal) return refusal;
    this.framesPut += 1;
    this.framesHeld += 1;
    let held = true;
    const release = () => {
      if (held) this.framesHeld -= 1;
      held = false;
    };
    const work = this.script.decode(jpeg).then((failure) => {
      if (failure) release();
      return failure;
    });
    const dropped = Promise.withResolvers<Fault>();
    const drop = () => {
      release();
      // The native engine also ends the decode of a dropped frame.
      dropped.resolve(new Fault("busy", "the frame was dropped before its decode"));
    };
    const taken = () => {
      release();
      frame.decodeMs = 0;
      return work;
    };
    const frame = {
      decoded: () => Promise.race([work, dropped.promise]),
      decodeMs: this.decodeMs,
      drop,
      freed: async () => {},
    };
    this.taken.set(frame, taken);
    return frame;
  }

  private observe(manifest: Manifest, observation: Observation, slot: FakeSlot | undefined): Inference | Fault {
    const refusal = this.script.observe();
    if (refusal) return refusal;
    if (slot?.running) throw new Error("a slot takes one inference at a time");
    this.manifests.set(observation, manifest);
    const frames = observation.frames.map((frame) => present(this.taken.get(frame), "a frame of this engine")());
    this.runsHeld += 1;
    if (slot) slot.running = true;
    const cancelled = Promise.withResolvers<Fault>();
    const released = Promise.withResolvers<void>();
    let [settled, started, ended] = [false, false, false];
    const work = Promise.all(frames).then(async (failures) => {
      const bad = failures.findIndex((failure) => failure !== undefined);
      if (bad >= 0) run.badFrame = bad;
      const failure = failures[bad];
      if (failure) return failure;
      if (!settled) this.observations.push(observation);
      await this.script.start(observation);
      started = true;
      return settled ? this.chunk(observation) : this.script.run(observation);
    });
    const result = Promise.race([work, cancelled.promise]).then((outcome) => {
      settled = true;
      if (slot && !(outcome instanceof Fault)) slot.staged = JSON.stringify([observation.step, observation.seed]);
      return outcome;
    });
    const end = () => {
      if (!settled || ended) throw new Error("an inference is committed or aborted once, after its result");
      ended = true;
      this.runsHeld -= 1;
      if (slot) slot.running = false;
      released.resolve();
    };
    const cancel = () => {
      if (settled) return;
      settled = true;
      this.cancels += 1;
      // The native engine also settles the result at once, whatever still runs.
      cancelled.resolve(new Fault("cancelled", "the run was cancelled"));
    };
    const run: Inference & { badFrame: number | undefined } = {
      result,
      badFrame: undefined,
      decodeMs: frames.length * this.decodeMs,
      modelMs: this.modelMs,
      released: released.promise,
      cancel,
      withdraw: () => {
        if (started || settled) return false;
        cancel();
        return true;
      },
      commit: () => {
        end();
        this.commits += 1;
        if (slot?.staged !== undefined) slot.committed.push(slot.staged);
      },
      abort: () => {
        end();
        this.aborts += 1;
        if (slot) slot.staged = undefined;
      },
    };
    return run;
  }
}

function emptySlot(): FakeSlot {
  return { committed: [], staged: undefined, running: false };
}

function slotOf(slots: readonly FakeSlot[], manifest: Manifest, index: number | undefined): FakeSlot | undefined {
  if (manifest.stateful !== (index !== undefined)) throw new Error("a slot is named on a model with memory alone");
  return index === undefined ? undefined : present(slots[index], "a slot");
}

/** A run that goes on until it is cancelled. */
export function runUntilCancelled(): Promise<never> {
  return new Promise(() => {});
}
