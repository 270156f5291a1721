/** The engine with a model loaded, in this process, for proofs that look below HTTP. */
import { installedBundles } from "../src/bundle/read.ts";
import type { Bundle, ChunkResult, Engine, Frame, LoadOptions, Model } from "../src/engine/engine.ts";
import { openEngine } from "../src/engine/native.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL } from "../src/measure/sample/observation.ts";
import { Failure } from "../src/std/failure.ts";
import { Problem } from "../src/std/problem.ts";

export interface OpenModel {
  readonly engine: Engine;
  readonly model: Model;
  close(): Promise<void>;
}

interface Options extends Partial<LoadOptions> {
  readonly device: string;
  readonly decodeThreads: number;
}

/** The sample's model, unless another bundle is given. */
export async function openModel({ decodeThreads, ...options }: Options): Promise<OpenModel | Problem> {
  const bundle = options.bundle ?? (await sampleBundle());
  if (bundle instanceof Problem) return bundle;
  const engine = await openEngine({ decodeThreads });
  if (engine instanceof Problem) return engine;
  // Without a timer or a socket Bun's event loop spins while it waits, and takes a core from the engine; a server has sockets. The
  // engine's callback does not keep the process alive either.
  const alive = setInterval(() => undefined, 1000);
  const closeEngine = async () => {
    clearInterval(alive);
    await engine.close();
  };
  const model = await engine.load({ replicas: 1, threads: undefined, slots: undefined, ...options, bundle });
  if (model instanceof Failure) {
    await closeEngine();
    return new Problem(model.message);
  }
  const close = async (): Promise<void> => {
    await model.unload();
    await closeEngine();
  };
  return { engine, model, close };
}

async function sampleBundle(): Promise<Bundle | Problem> {
  const bundles = await installedBundles(undefined);
  if (bundles instanceof Problem) return bundles;
  const bundle = bundles.find((one) => one.manifest.id === SAMPLE_MODEL);
  return bundle ?? new Problem(`no bundle of ${SAMPLE_MODEL} is installed`);
}

/** One observation through the engine, as the service does it. Throws when anything is refused: a bench has no caller to tell. */
export async function oneChunk(model: Model, frames: readonly Uint8Array[], step: number): Promise<ChunkResult> {
  const put = frames.map((jpeg) => model.framePut(jpeg, 0));
  const taken = put.filter((frame): frame is Frame => !(frame instanceof Failure));
  const refused = (await Promise.all(taken.map((frame) => frame.decoded()))).find((end) => end instanceof Failure);
  if (taken.length < put.length || refused) throw new Error(`a frame was refused: ${refused?.message ?? "no slot"}`);
  const state = new Float32Array(model.manifest.state.columns.length).fill(0.1);
  const run = model.observe({ frames: taken, instruction: SAMPLE_INSTRUCTION, state, step, seed: 0, turn: 0 });
  if (run instanceof Failure) throw new Error(run.message);
  const result = await run.result;
  if (result instanceof Failure) throw new Error(result.message);
  run.commit();
  return result;
}
