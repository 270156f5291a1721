/** The engine with the sample's model loaded, in this process, for proofs that look below HTTP. */
import type { Manifest } from "../src/bundle/manifest.ts";
import type { ChunkResult, Engine, Frame, Model } from "../src/engine/engine.ts";
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

export async function openModel(options: { decodeThreads: number; device: string }): Promise<OpenModel | Problem> {
  const bundles = await installedBundles(undefined);
  if (bundles instanceof Problem) return bundles;
  const bundle = bundles.find((one) => one.manifest.id === SAMPLE_MODEL);
  if (bundle === undefined) return new Problem(`no bundle of ${SAMPLE_MODEL} is installed`);
  const engine = await openEngine({ decodeThreads: options.decodeThreads });
  if (engine instanceof Problem) return engine;
  const model = await engine.load({
    bundle,
    device: options.device,
    replicas: 1,
    threads: undefined,
    slots: undefined,
  });
  if (model instanceof Problem) {
    await engine.close();
    return model;
  }
  const close = async (): Promise<void> => {
    await model.unload();
    await engine.close();
  };
  return { engine, model, manifest: bundle.manifest, close };
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
