/** The native engine with a loaded model, for tests; closed by `await using`. */
import { afterAll, expect } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "../../src/bundle/read.ts";
import type {
  ChunkResult,
  Engine,
  Frame,
  Inference,
  LoadOptions,
  Model,
  Observation,
} from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Problem } from "../../src/std/problem.ts";
import { bundleOf, episodeOf, type Golden, parityOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import type { GoldenInput } from "../bundle/reference.ts";

/** Ends the test on a failure or problem. */
export function ok<T>(value: T | Fault | Problem): T {
  if (value instanceof Fault) throw new Error(`${value.kind}: ${value.message} ${value.detail ?? ""}`);
  if (value instanceof Problem) throw new Error(value.message);
  return value;
}

/** What most loads ask for. */
const LOAD = { device: "cpu", replicas: 1, threads: 1, slots: undefined } as const;

/** An engine for the tests of a file, to be opened at its begin; closed behind them. */
export async function engineOfFile(): Promise<Engine> {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  afterAll(async () => await engine.close());
  return engine;
}

/** Why the bundle is not loaded. */
export async function refusal(engine: Engine, bundle: Bundle, options: Partial<LoadOptions> = {}): Promise<string> {
  const loaded = await engine.load({ bundle, ...LOAD, ...options });
  if (!(loaded instanceof Problem)) throw new Error("it was loaded");
  return loaded.message;
}

/** Ends an inference that gives no chunk. */
export async function failed(inference: Inference): Promise<Fault> {
  const result = await inference.result;
  inference.abort();
  await inference.released;
  if (!(result instanceof Fault)) throw new Error("the inference gave a chunk");
  return result;
}

export class Opened implements AsyncDisposable {
  private constructor(
    readonly engine: Engine,
    readonly model: Model,
    readonly bundle: FlowBundle,
  ) {}

  /** A fresh engine with molmoact2, or with the model of another folder. */
  static async on(device: string, replicas = 1, name = "molmoact2-yam"): Promise<Opened> {
    const bundle = await bundleOf(name);
    return await Opened.with(ok(await openEngine({ decodeThreads: 2 })), bundle, { device, replicas });
  }

  static async with(engine: Engine, bundle: Bundle, options: Partial<LoadOptions> = {}): Promise<Opened> {
    return new Opened(engine, ok(await engine.load({ bundle, ...LOAD, ...options })), bundle as FlowBundle);
  }

  /** Decoded frames in wire order. */
  async frames(jpegs: readonly Uint8Array[], turn = 0): Promise<Frame[]> {
    const frames = jpegs.map((jpeg) => ok(this.model.framePut(jpeg, turn)));
    for (const frame of frames) ok(await frame.decoded());
    return frames;
  }

  /** The bundle's parity observation, with `changes`. */
  async observation(changes: Partial<Observation> = {}, jpegs?: readonly Uint8Array[]): Promise<Observation> {
    const { given } = await parityOf(this.bundle);
    return await this.observed(jpegs === undefined ? given : { ...given, jpegs }, changes);
  }

  async observed({ jpegs, state, instruction, step, seed, prefix }: GoldenInput, changes: Partial<Observation> = {}) {
    const frames = await this.frames(jpegs, changes.turn);
    const continued = prefix && { prefix: Float32Array.from(prefix.flat()) };
    return { frames, instruction, state: new Float32Array(state), step, seed, turn: 0, ...continued, ...changes };
  }

  /** One whole chunk; its actions are a copy. */
  async chunk(changes: Partial<Observation> = {}, jpegs?: readonly Uint8Array[]): Promise<ChunkResult> {
    return await committed(ok(this.model.observe(await this.observation(changes, jpegs))));
  }

  /** One whole chunk of an observation; its actions are a copy. */
  async give(given: GoldenInput, changes: Partial<Observation> = {}): Promise<ChunkResult> {
    return await committed(ok(this.model.observe(await this.observed(given, changes))));
  }

  /** The chunks of the parity episode, each with what NumPy computed; a model with memory keeps it in `slot`. */
  async episode(slot = 0): Promise<{ readonly chunk: ChunkResult; readonly golden: Golden }[]> {
    const place = this.bundle.manifest.memory === null ? {} : { slot };
    const chunks: { chunk: ChunkResult; golden: Golden }[] = [];
    for (const golden of await episodeOf(this.bundle)) {
      chunks.push({ chunk: await this.give(golden.given, place), golden });
    }
    return chunks;
  }

  /** Allocations of the native library in `chunks` chunks once its threads are warm. The system chooses which thread takes a frame. */
  async allocations(chunks: number, check: (chunk: ChunkResult) => void = () => {}): Promise<number> {
    let allocated = 0;
    for (let batch = 0; batch === 0 || (allocated > 0 && batch < 5); batch += 1) {
      const before = this.engine.stats().allocations;
      for (let chunk = 0; chunk < chunks; chunk += 1) check(await this.chunk());
      allocated = this.engine.stats().allocations - before;
    }
    return allocated;
  }

  /** A run that is still to be awaited. */
  async run(given: GoldenInput, changes: Partial<Observation> = {}): Promise<Inference> {
    return ok(this.model.observe(await this.observed(given, changes)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close();
  }
}

async function committed(run: Inference): Promise<ChunkResult> {
  const result = ok(await run.result);
  const copy = { ...result, actions: result.actions.slice() };
  run.commit();
  await run.released;
  return copy;
}

/** The rows of a bundle's episode, as if it were the export `as`, whose noise is then the same. */
export async function episodeRows(
  engine: Engine,
  { manifest, paths }: Bundle,
  { as = manifest, device = "cpu" }: { readonly as?: Bundle["manifest"]; readonly device?: string } = {},
): Promise<number[][][]> {
  const bundle = { paths, manifest: { ...manifest, export_id: as.export_id } };
  const opened = await Opened.with(engine, bundle, { slots: 1, device });
  expect([opened.model.refused, opened.model.flow]).toEqual([[], device === "cpu" ? "steps" : "whole"]);
  const chunks = await opened.episode();
  await opened.model.unload();
  return chunks.map(({ chunk }) => rowsOf(chunk));
}

/** Rows of a flat chunk. */
export function rowsOf({ actions, columns }: ChunkResult): number[][] {
  return Array.from({ length: actions.length / columns }, (_, row) => [
    ...actions.subarray(row * columns, (row + 1) * columns),
  ]);
}

const FIXTURES = join(import.meta.dir, "../../../shared/fixtures");

/** The real camera frames where they are present: front, left, right. */
export async function realFrames(): Promise<Uint8Array[] | undefined> {
  const names = await readdir(FIXTURES).catch((): string[] => []);
  if (!names.includes("front.jpg")) return undefined;
  return await Promise.all(
    ["front.jpg", "left.jpg", "right.jpg"].map((name) => Bun.file(join(FIXTURES, name)).bytes()),
  );
}
