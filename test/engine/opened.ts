/** The native engine with a loaded model, for tests; closed by `await using`. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle, ChunkResult, Engine, Frame, Model, Observation } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Failure, Problem } from "../../src/error.ts";
import { freshBundle, parityOf } from "../bundle/built.ts";

/** Ends the test on a failure or problem. */
export function ok<T>(value: T | Failure | Problem): T {
  if (value instanceof Failure) throw new Error(`${value.code}: ${value.message} ${value.detail ?? ""}`);
  if (value instanceof Problem) throw new Error(value.message);
  return value;
}

export class Opened implements AsyncDisposable {
  private constructor(
    readonly engine: Engine,
    readonly model: Model,
    readonly bundle: Bundle,
  ) {}

  static async on(device: string, replicas = 1): Promise<Opened> {
    const bundle = await freshBundle();
    const engine = ok(await openEngine({ decodeThreads: 2 }));
    return new Opened(
      engine,
      ok(await engine.load({ bundle, device, replicas, threads: 1, slots: undefined })),
      bundle,
    );
  }

  async frames(jpegs: readonly Uint8Array[]): Promise<Frame[]> {
    const frames = jpegs.map((jpeg, camera) => ok(this.model.framePut(camera, jpeg, 0)));
    for (const frame of frames) ok(await frame.decoded);
    return frames;
  }

  /** The bundle's parity observation, with `changes`. */
  async observation(changes: Partial<Observation> = {}, jpegs?: readonly Uint8Array[]): Promise<Observation> {
    const { given } = await parityOf(this.bundle);
    const frames = await this.frames(jpegs ?? given.jpegs);
    const state = new Float32Array(given.state);
    return { frames, instruction: given.instruction, state, step: given.step, seed: given.seed, turn: 0, ...changes };
  }

  /** One whole chunk; its actions are a copy. */
  async chunk(changes: Partial<Observation> = {}, jpegs?: readonly Uint8Array[]): Promise<ChunkResult> {
    const run = ok(this.model.observe(await this.observation(changes, jpegs)));
    const result = ok(await run.result);
    const copy = { ...result, actions: result.actions.slice() };
    run.commit();
    return copy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close();
  }
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
