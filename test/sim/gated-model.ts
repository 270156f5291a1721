/** A model, fake or native, whose every outcome waits for the history; it also keeps what its slots have committed. */
import type { ChunkResult, Frame, Inference, Observation } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { assert, present } from "../../src/std/assert.ts";
import type { KnownModel } from "../fake-engine.ts";
import { type Gates, inBackground } from "./gates.ts";

/** An inference that was committed, with the frames that it was given. */
export interface Committed {
  readonly observation: Observation;
  readonly jpegs: readonly Uint8Array[];
  /** Row-major, as the engine gave them. */
  readonly actions: Float32Array;
}

interface GatedFrame extends Frame {
  readonly inner: Frame;
  readonly jpeg: Uint8Array;
  /** An inference has it now. */
  taken(): void;
}

export class GatedModel {
  /** The model as a service has it: what does not wait for the history is that of `inner`. */
  readonly served: KnownModel;
  /** What each slot has committed since it was last dropped. */
  readonly bySlot = new Map<number, Committed[]>();
  readonly committed: Committed[] = [];
  /** Inferences that are neither committed nor aborted. */
  open = 0;
  /** Frames put and neither dropped, refused nor handed to an inference. */
  framesHeld = 0;
  private decoding: Frame[] | undefined;
  private decoded: Promise<unknown> = Promise.resolve();

  constructor(
    readonly inner: KnownModel,
    private readonly gates: Gates,
    /** The flow step before which the next inference fails; undefined: it does not fail. */
    private readonly failStep: () => number | undefined,
  ) {
    const own: Partial<KnownModel> = {
      framePut: (jpeg, turn) => this.framePut(jpeg, turn),
      observe: (observation) => this.observe(observation),
      sessionDrop: (slot) => this.sessionDrop(slot),
    };
    this.served = new Proxy(inner, {
      get: (target, name) => {
        const value = own[name as keyof KnownModel] ?? Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  get manifest(): KnownModel["manifest"] {
    return this.inner.manifest;
  }

  private sessionDrop(slot: number): void {
    this.bySlot.delete(slot);
    this.inner.sessionDrop(slot);
  }

  /** Frames that are put together are decoded together. */
  private framePut(jpeg: Uint8Array, turn: number): GatedFrame | Fault {
    const inner = this.inner.framePut(jpeg, turn);
    if (inner instanceof Fault) return inner;
    if (this.decoding === undefined) {
      const frames: Frame[] = [];
      this.decoding = frames;
      queueMicrotask(() => {
        this.decoding = undefined;
      });
      this.decoded = this.gates.hold("decode", () => Promise.all(frames.map((frame) => frame.decoded())));
    }
    this.decoding.push(inner);
    this.framesHeld += 1;
    let held = true;
    const taken = () => {
      if (held) this.framesHeld -= 1;
      held = false;
    };
    const decoded = this.decoded
      .then(() => inner.decoded())
      .then((failure) => {
        if (failure) taken();
        return failure;
      });
    const drop = () => {
      taken();
      inner.drop();
    };
    return { inner, jpeg, decoded: () => decoded, decodeMs: 0, drop, freed: () => inner.freed(), taken };
  }

  private observe(observation: Observation): Inference {
    this.open += 1;
    const failStep = observation.failStep ?? this.failStep();
    return new GatedInference(this, this.gates, failStep === undefined ? observation : { ...observation, failStep });
  }

  /** Counts an inference as over. */
  ended(committed: Committed | undefined): void {
    this.open -= 1;
    if (!committed) return;
    this.committed.push(committed);
    const { slot } = committed.observation;
    if (slot !== undefined) this.bySlot.set(slot, [...(this.bySlot.get(slot) ?? []), committed]);
  }
}

class GatedInference implements Inference {
  readonly result: Promise<ChunkResult | Fault>;
  readonly released: Promise<void>;
  readonly decodeMs = 0;
  readonly modelMs = 0;
  badFrame: number | undefined;
  private readonly settled = Promise.withResolvers<ChunkResult | Fault>();
  private readonly over = Promise.withResolvers<void>();
  private readonly frames: readonly GatedFrame[];
  private outcome: ChunkResult | Fault | undefined;
  private inner: Inference | undefined;
  private verdict: "commit" | "abort" | undefined;

  constructor(
    private readonly model: GatedModel,
    private readonly gates: Gates,
    private readonly observation: Observation,
  ) {
    this.result = this.settled.promise;
    this.released = this.over.promise;
    this.frames = observation.frames as readonly GatedFrame[];
    for (const frame of this.frames) frame.taken();
    inBackground(this.wait());
  }

  /** Its frames, then its turn. */
  private async wait(): Promise<void> {
    const failures = await Promise.all(this.frames.map((frame) => frame.decoded()));
    const bad = failures.findIndex((failure) => failure !== undefined);
    const failure = failures[bad];
    if (failure) {
      if (this.outcome === undefined) this.badFrame = bad;
      for (const frame of this.frames) frame.drop();
      this.settle(failure);
      return;
    }
    await this.gates.hold("start", async () => {});
    this.start();
  }

  cancel(): void {
    if (this.outcome !== undefined) return;
    if (this.inner) this.inner.cancel();
    else for (const frame of this.frames) frame.drop();
    this.settle(new Fault("cancelled", "the inference was cancelled"));
  }

  withdraw(): boolean {
    if (this.outcome !== undefined) return false;
    // An inference that was handed over may wait in the engine's own queue; whether it still does is a race that a seed cannot decide.
    if (this.inner) return false;
    this.cancel();
    return true;
  }

  commit(): void {
    this.decide("commit");
  }

  abort(): void {
    this.decide("abort");
  }

  private start(): void {
    if (this.outcome !== undefined) return;
    const frames = this.frames.map(({ inner }) => inner);
    const inner = this.model.inner.observe({ ...this.observation, frames });
    if (inner instanceof Fault) {
      this.settle(inner);
      return;
    }
    this.inner = inner;
    inBackground(this.gates.hold("result", () => inner.result).then((outcome) => this.settle(outcome)));
  }

  private settle(outcome: ChunkResult | Fault): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    this.settled.resolve(outcome);
  }

  private decide(verdict: "commit" | "abort"): void {
    assert(
      this.outcome !== undefined && this.verdict === undefined,
      "an inference is committed or aborted once, after its result",
    );
    this.verdict = verdict;
    const { inner } = this;
    if (verdict === "commit") {
      const result = present(this.outcome, "an outcome");
      assert(!(result instanceof Fault), "a failed inference is not committed");
      this.model.ended({
        observation: this.observation,
        jpegs: this.frames.map(({ jpeg }) => jpeg),
        actions: result.actions.slice(),
      });
      present(inner, "an inference that was started").commit();
    } else {
      this.model.ended(undefined);
      if (inner) inBackground(inner.result.then(() => inner.abort()));
    }
    inBackground(this.gates.hold("release", async () => await inner?.released).then(() => this.over.resolve()));
  }
}
