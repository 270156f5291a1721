/**
 * `tendon bench gpu`: where does the time of a chunk go on this device?
 *
 * Each bundle is loaded in this process, without a service: stations alone and in batches. Then a fresh service answers over a socket. Random weights are measured like trained ones, also those whose rows nobody has computed.
 */
import { availableParallelism } from "node:os";
import { weightWords } from "../../bundle/describe.ts";
import type { Bundle } from "../../bundle/read.ts";
import { readBundle, withTolerance } from "../../bundle/read.ts";
import { type GpuSettings, gpuOptions } from "../../config/gpu.ts";
import type { Engine, LoadOptions, Model } from "../../engine/engine.ts";
import { installedBundles } from "../../service/bundles.ts";
import { present } from "../../std/assert.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { withEngine } from "../engine.ts";
import type { Observed } from "../inference.ts";
import type { BenchTarget, Measurement } from "../target.ts";
import { observationsOf } from "./observations.ts";
import { batchRounds, episodeRounds, type Rounds } from "./rounds.ts";
import { type SocketFigures, socketFigures } from "./socket.ts";

/** How the manifest names the longest batch that the engine takes. */
const BATCH_MAX = 16;

export interface GpuPlan extends Pick<BenchTarget, "devices" | "progress"> {
  /** A folder of bundles, or one bundle; undefined: those that ship with tendon. */
  readonly models?: string | undefined;
  /** Batches of each size. */
  readonly chunks: number;
  readonly batchMax: number;
  readonly gpu: GpuSettings;
  /** Rows may differ by this, in their units, in place of a bundle's own tolerance. */
  readonly within?: number | undefined;
}

export interface Batch extends Rounds {
  readonly asked: number;
}

interface ParityFigures {
  /** One of each parity vector, in the units of the rows. */
  readonly differences: readonly number[];
  /** The largest difference that was allowed here. */
  readonly bound: number;
  /** The bundle's own bound, which every service holds it to. */
  readonly tolerance: number;
}

export interface GpuMeasurement extends Measurement {
  readonly weights: string;
  readonly steps: number;
  readonly refused: Model["refused"];
  /** How the steps were computed. */
  readonly flow: Model["flow"];
  readonly loadMs: number;
  /** undefined: nobody has computed its rows. */
  readonly parity: ParityFigures | undefined;
  readonly deviceBytes: number;
  readonly copies: Model["copies"];
  /** What it has of an NVIDIA driver. */
  readonly driver: Model["driverDevice"];
  readonly deviceWeights: Model["deviceWeights"];
  readonly gpu: ReturnType<typeof gpuOptions>;
  /** Milliseconds that the rows of a chunk play. */
  readonly chunkPlaysMs: number;
  readonly batches: readonly Batch[];
  /** A text says why there is none. */
  readonly socket: SocketFigures | string;
}

export async function runGpuSuite(plan: GpuPlan): Promise<GpuMeasurement[] | Problem> {
  const bundles = await bundlesOf(plan.models);
  if (bundles instanceof Problem) return bundles;
  const measurements: GpuMeasurement[] = [];
  for (const device of plan.devices) {
    for (const bundle of bundles) {
      await plan.progress?.(`measuring: ${bundle.manifest.id} on ${device}`);
      const measured = await measure(plan, bundle, device);
      if (measured instanceof Problem) return measured;
      measurements.push(measured);
    }
  }
  return measurements;
}

async function bundlesOf(dir: string | undefined): Promise<readonly Bundle[] | Problem> {
  if (dir === undefined || !(await Bun.file(`${dir}/manifest.json`).exists())) return await installedBundles(dir);
  const one = await readBundle(dir);
  return one instanceof Problem ? one : [one];
}

/** `size`: observations at once. */
function sized(bundle: Bundle, size: number): Bundle {
  const batch = bundle.manifest.memory ? 1 : Math.min(BATCH_MAX, size);
  return { ...bundle, manifest: { ...bundle.manifest, batch } };
}

async function measure(plan: GpuPlan, bundle: Bundle, device: string): Promise<GpuMeasurement | Problem> {
  const episode = await observationsOf(bundle);
  const alone = await withoutService(plan, bundle, device, episode);
  if (alone instanceof Problem) return alone;
  return { ...alone, socket: await overSocket(plan, bundle, device, episode) };
}

type Alone = Omit<GpuMeasurement, "socket">;

async function withoutService(
  plan: GpuPlan,
  given: Bundle,
  device: string,
  episode: readonly Observed[],
): Promise<Alone | Problem> {
  return await withEngine(Math.max(1, availableParallelism() - 1), async (engine) => {
    const bundle = withTolerance(sized(given, plan.batchMax), plan.within);
    const options = optionsOf(bundle, device, plan.gpu);
    const before = systemClock.monotonicMs();
    const model = await engine.load(options);
    if (model instanceof Problem) return model;
    const loadMs = systemClock.monotonicMs() - before;
    const batches = await batchesOf({ plan, engine, model, bundle, episode });
    const parity = parityOf(given, bundle, model);
    const { refused, deviceBytes, copies, flow, driverDevice: driver, deviceWeights } = model;
    await model.unload();
    if (batches instanceof Problem) return batches;
    const { manifest } = given;
    return {
      ...{ model: manifest.id, device: model.device, robots: 1, reference: manifest.reference },
      ...{ weights: weightWords(manifest), steps: manifest.flow?.steps ?? 0, flow, refused, loadMs, parity },
      ...{ deviceBytes, copies, driver, deviceWeights, gpu: gpuOptions(plan.gpu), batches },
      chunkPlaysMs: (1000 * manifest.action.rows) / manifest.action.hz,
    };
  });
}

function parityOf({ manifest }: Bundle, held: Bundle, { parity }: Model): ParityFigures | undefined {
  if (manifest.parity.unproved) return undefined;
  return { differences: parity, bound: held.manifest.parity.tolerance, tolerance: manifest.parity.tolerance };
}

function optionsOf(bundle: Bundle, device: string, gpu: GpuSettings): LoadOptions {
  return { bundle, device, gpu: gpuOptions(gpu), replicas: 1, threads: undefined, slots: 1, unproved: true };
}

interface Loaded {
  readonly plan: GpuPlan;
  readonly engine: Engine;
  readonly model: Model;
  readonly bundle: Bundle;
  readonly episode: readonly Observed[];
}

async function batchesOf({ plan, engine, model, bundle, episode }: Loaded): Promise<Batch[] | Problem> {
  const { memory, batch } = bundle.manifest;
  const most = memory ? 1 : batch;
  const batches: Batch[] = [];
  for (let size = 1; size <= most; size *= 2) {
    const first = present(episode[0], "an observation of the bundle");
    const rounds = memory
      ? await episodeRounds(engine, model, episode, plan.chunks)
      : await batchRounds(engine, model, first, { size, count: plan.chunks });
    if (rounds instanceof Problem) return rounds;
    batches.push({ ...rounds, asked: size });
    // A device that runs observations one by one does so with more of them too.
    if (rounds.batch < size) break;
  }
  return batches;
}

async function overSocket(plan: GpuPlan, bundle: Bundle, device: string, episode: readonly Observed[]) {
  if (bundle.manifest.parity.unproved) return "not served: nobody has computed its rows";
  await plan.progress?.(`measuring: ${bundle.manifest.id}, over a socket`);
  const figures = await socketFigures(bundle, { device, gpu: plan.gpu, within: plan.within }, episode, plan.chunks);
  return figures instanceof Problem ? figures.message : figures;
}
