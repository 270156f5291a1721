/** Plans models from bundles and the configuration, and loads them. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { armWarning } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import type { Bundle } from "../bundle/read.ts";
import type { Rates } from "../charge/store/records.ts";
import { deviceText, placeReplicas, replicasOnProcessor } from "../config/devices.ts";
import { folders } from "../config/environment.ts";
import { gpuOptions } from "../config/gpu.ts";
import { ROBOT_DEFAULT, robotRates } from "../config/robot.ts";
import type { ServeConfig } from "../config/serve.ts";
import { type Engine, inferenceMsMaxOf, type LoadOptions, type Model } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { LIMITS } from "../limits.ts";
import type { Catalog } from "../robot/catalog.ts";
import { keepDigests, recallDigests } from "../std/file-digest.ts";
import { rowsText } from "../std/float32.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import { nearest } from "../std/nearest.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { installedBundles } from "./bundles.ts";
import type { Replicas } from "./replicas.ts";

/** A model to load, and its price. */
export interface PlannedModel extends LoadOptions {
  readonly bundle: Bundle;
  readonly rates: Rates;
}

/** A model whose load has begun. */
export interface BegunModel extends PlannedModel {
  readonly loaded: Promise<Model | Problem>;
}

/** What to load, in the order of the ids, or the first thing that is wrong. */
export function planModels(
  bundles: readonly Bundle[],
  config: Pick<ServeConfig, "robot" | "dev"> & Partial<Pick<ServeConfig, "chunkSeconds" | "gpu">>,
): PlannedModel[] | Problem {
  const problem = (what: string) => new Problem(what, EXIT.usage);
  const ids = bundles.map((bundle) => bundle.manifest.id);
  const unknown = [...config.robot.keys()].find((id) => !ids.includes(id));
  if (unknown !== undefined) {
    const advice =
      ids.length === 0
        ? "there are no bundles at all; name their folder with --models"
        : `did you mean "${nearest(unknown, ids)}"?`;
    return problem(`the configuration has [robot."${unknown}"], but there is no bundle of that id; ${advice}`);
  }
  const plan: PlannedModel[] = [];
  const unpriced: string[] = [];
  for (const bundle of bundles.toSorted((one, other) => (one.manifest.id < other.manifest.id ? -1 : 1))) {
    const { id } = bundle.manifest;
    const robot = config.robot.get(id) ?? ROBOT_DEFAULT;
    const placed = placeReplicas(robot);
    if (typeof placed === "string") return problem(`[robot."${id}"] ${placed}`);
    const { device, replicas } = placed;
    const warning = armWarning(bundle.manifest, deviceText(device));
    if (warning !== undefined && !config.dev && !robot.allowReference) {
      return problem(`${id}: ${warning} Start with --dev, or set allow_reference = true in [robot."${id}"]`);
    }
    const { slots, threads, parkedMibMax } = robot;
    const parkedBytesMax = parkedMibMax === undefined ? "default" : parkedMibMax * 2 ** 20;
    const rates = robotRates(id, robot);
    if (typeof rates === "string") {
      unpriced.push(`[robot."${id}"]: ${rates}`);
      continue;
    }
    const inferenceMsMax = config.chunkSeconds === undefined ? undefined : inferenceMsMaxOf(config.chunkSeconds);
    const gpu = gpuOptions(config.gpu, robot.gpu);
    plan.push({ bundle, device, gpu, replicas, slots, parkedBytesMax, threads, rates, inferenceMsMax });
  }
  if (unpriced.length > 0) return problem(unpriced.join("\n"));
  const onProcessor = plan.reduce((sum, { device, replicas }) => sum + replicasOnProcessor(device, replicas), 0);
  return plan.map((planned) => ({ ...planned, onProcessor }));
}

export interface Preparation {
  /** The engine with its threads; the service that takes it closes it. */
  readonly engine: Promise<Engine | Problem>;
  /** Begins the loads once every file is verified, and not before the store is this process's own. */
  begin(): Promise<readonly BegunModel[] | Problem>;
}

/** A file in the cache folder: digests of verified files, so that the next start reads only those that have changed. */
const DIGESTS_FILE = "digests.json";

/**
 * What a start does beside the opening of its store, and what it then leaves to native threads while the event loop puts the service
 * together: neither needs records or a listener, and both take as long. Begins at once. Nothing is thrown: what goes wrong is a
 * problem, or is thrown where it is awaited.
 */
export function prepare(
  config: Pick<ServeConfig, "modelsDir" | "gpu" | "robot" | "dev" | "chunkSeconds">,
): Preparation {
  const { modelsDir } = config;
  const digests = join(folders().cache, DIGESTS_FILE);
  const recalled = recallDigests(digests);
  const engine = recalled.then(() =>
    openEngine({ decodeThreads: Math.min(availableParallelism(), LIMITS.decodeThreadsMax) }),
  );
  const bundles = recalled.then(() => installedBundles(modelsDir));
  for (const awaitedLater of [engine, bundles]) awaitedLater.catch(() => {});
  bundles.then(() => keepDigests(digests)).catch(() => {});
  const begin = async (): Promise<readonly BegunModel[] | Problem> => {
    const verified = await bundles;
    if (verified instanceof Problem) return verified;
    const plan = planModels(verified, config);
    if (plan instanceof Problem) return plan;
    const opened = await engine;
    if (opened instanceof Problem) return opened;
    return plan.map((planned) => ({ ...planned, loaded: opened.load(planned) }));
  };
  return { engine, begin };
}

/** Closes the engine of a start that failed before the service took it. */
export async function discard({ engine }: Preparation): Promise<void> {
  const opened = await engine.catch(() => undefined);
  if (opened && !(opened instanceof Problem)) await opened.close();
}

/** Adds the ids to the catalog, then each model as soon as it is warm: from then on it is served. */
export async function loadModels(
  models: readonly BegunModel[],
  catalog: Catalog,
  log: Log,
  lifecycle: Lifecycle,
  replicas?: Pick<Replicas, "watch">,
): Promise<Problem | undefined> {
  for (const { bundle, rates, device } of models) {
    catalog.add(bundle.manifest, rates, undefined, deviceText(device));
  }
  catalog.known = true;
  if (lifecycle.draining) return undefined;
  const loads = models.map(async ({ bundle: { manifest }, rates, loaded }) => {
    const model = await loaded;
    if (model instanceof Problem) return model;
    catalog.add(manifest, rates, model);
    replicas?.watch(model);
    const { parity, refused, flowReason, sessionMemory } = model;
    const { places, placesOnDevice, hostMemoryBecause } = sessionMemory;
    const difference = parity.length === 0 ? undefined : Math.max(...parity);
    log.info("model loaded", {
      model: manifest.id,
      device: deviceText(model.devices),
      replicas: model.replicas,
      ...(model.slots === 0 ? {} : { slots: model.slots, places, placesOnDevice }),
      ...(hostMemoryBecause === undefined ? {} : { hostMemoryBecause }),
      ...(difference === undefined ? {} : { difference }),
      ...(flowReason === null ? {} : { flow: "step by step", because: flowReason }),
    });
    for (const { device, reason } of refused) log.info("device refused", { model: manifest.id, device, reason });
    return undefined;
  });
  const [first] = models;
  if (first) warmPrinter(first.bundle.manifest);
  const outcomes = await Promise.all(loads);
  return outcomes.find((outcome) => outcome !== undefined);
}

/** Chunks printed before the first request, so that the JIT has compiled the printer by then. */
const WARM_CHUNKS = 100;

/** Runs while the engine loads on its own threads. The numbers have both signs and all lengths, as those of an arm have. */
function warmPrinter({ action }: Manifest): void {
  const columns = action.columns.length;
  const values = new Float32Array(action.rows * columns);
  for (let chunk = 0; chunk < WARM_CHUNKS; chunk += 1) {
    for (let at = 0; at < values.length; at += 1) values[at] = Math.sin(at + chunk * values.length);
    rowsText(values, action.rows, columns);
  }
}
