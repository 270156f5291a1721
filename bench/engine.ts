/** The engine with a model loaded, in this process, for proofs that look below HTTP. */
import type { Manifest } from "../src/bundle/manifest.ts";
import type { Bundle } from "../src/bundle/read.ts";
import type { ChunkResult, Engine, Frame, LoadOptions, Model } from "../src/engine/engine.ts";
import { Fault } from "../src/engine/fault.ts";
import { openEngine } from "../src/engine/native.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL } from "../src/measure/sample/observation.ts";
import { installedBundles } from "../src/service/bundles.ts";
import { Problem } from "../src/std/problem.ts";

export interface OpenModel {
  readonly engine: Engine;
  readonly model: Model;
  readonly manifest: Manifest;
  close(): Promise<void>;
}

interface Options extends Partial<Omit<LoadOptions, "bundle">> {
  readonly bundle?: Bundle;
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
  if (model instanceof Problem) {
    await closeEngine();
    return model;
  }
  const close = async (): Promise<void> => {
    await model.unload();
    await closeEngine();
  };
  return { engine, model, manifest: bundle.manifest, close };
}

async function sampleBundle(): Promise<Bundle | Problem> {
  const bundles = await installedBundles(undefined);
  if (bundles instanceof Problem) return bundles;
  const bundle = bundles.find((one) => one.manifest.id === SAMPLE_MODEL);
  return bundle ?? new Problem(`no bundle of ${SAMPLE_MODEL} is installed`);
}

/** One observation through the engine, as the service does it. Throws when anything is refused: a bench has no caller to tell. */
export async function oneChunk(
  { model, manifest }: OpenModel,
  frames: readonly Uint8Array[],
  step: number,
): Promise<ChunkResult> {
  const put = frames.map((jpeg) => model.framePut(jpeg, 0));
  const taken = put.filter((frame): frame is Frame => !(frame instanceof Fault));
  const refused = (await Promise.all(taken.map((frame) => frame.decoded()))).find((end) => end instanceof Fault);
  if (taken.length < put.length || refused) throw new Error(`a frame was refused: ${refused?.message ?? "no slot"}`);
  const state = new Float32Array(manifest.state.columns.length).fill(0.1);
  const run = model.observe({ frames: taken, instruction: SAMPLE_INSTRUCTION, state, step, seed: 0, turn: 0 });
  if (run instanceof Fault) throw new Error(run.message);
  const result = await run.result;
  if (result instanceof Fault) throw new Error(result.message);
  run.commit();
  return result;
}
