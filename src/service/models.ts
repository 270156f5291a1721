/** From verified bundles and the configuration to loaded models. */
import { armWarning } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import type { Bundle } from "../bundle/read.ts";
import type { Rates } from "../charge/store/records.ts";
import { deviceText, placeReplicas } from "../config/devices.ts";
import { gpuOptions } from "../config/gpu.ts";
import { ROBOT_DEFAULT, robotRates } from "../config/robot.ts";
import type { ServeConfig } from "../config/serve.ts";
import { inferenceMsMaxOf, type LoadOptions, type Model } from "../engine/engine.ts";
import type { Catalog } from "../robot/catalog.ts";
import { rowsText } from "../std/float32.ts";
import type { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import { nearest } from "../std/nearest.ts";
import { EXIT, Problem } from "../std/problem.ts";
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
  const ids = bundles.map((bundle) => bundle.manifest.id);
  for (const id of config.robot.keys()) {
    if (ids.includes(id)) continue;
    const advice =
      ids.length === 0
        ? "there are no bundles at all; name their folder with --models"
        : `did you mean "${nearest(id, ids)}"?`;
    return new Problem(
      `the configuration has [robot."${id}"], but there is no bundle of that id; ${advice}`,
      EXIT.usage,
    );
  }
  const plan: PlannedModel[] = [];
  for (const bundle of bundles.toSorted((one, other) => (one.manifest.id < other.manifest.id ? -1 : 1))) {
    const { id } = bundle.manifest;
    const robot = config.robot.get(id) ?? ROBOT_DEFAULT;
    const placed = placeReplicas(robot);
    if (typeof placed === "string") return new Problem(`[robot."${id}"] ${placed}`, EXIT.usage);
    const { device, replicas } = placed;
    const warning = armWarning(bundle.manifest, deviceText(device));
    if (warning !== undefined && !config.dev && !robot.allowReference) {
      return new Problem(
        `${id}: ${warning} Start with --dev, or set allow_reference = true in [robot."${id}"]`,
        EXIT.usage,
      );
    }
    const { slots, threads, parkedMibMax } = robot;
    const parkedBytesMax = parkedMibMax === undefined ? "default" : parkedMibMax * 2 ** 20;
    const rates = robotRates(id, robot);
    if (typeof rates === "string") return new Problem(`[robot."${id}"]: ${rates}`, EXIT.usage);
    const inferenceMsMax = config.chunkSeconds === undefined ? undefined : inferenceMsMaxOf(config.chunkSeconds);
    const gpu = gpuOptions(config.gpu, robot.gpu);
    plan.push({ bundle, device, gpu, replicas, slots, parkedBytesMax, threads, rates, inferenceMsMax });
  }
  return plan;
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
