/** `tendon doctor`: is this machine able to serve, what would the service run on, and what to do about each red line. */
import { availableParallelism } from "node:os";
import { type ServeConfig, serveConfig } from "../config/serve.ts";
import { type Devices, readDevices } from "../engine/devices.ts";
import { type Engine, LOAD_MS_MAX } from "../engine/engine.ts";
import { locateLibraries } from "../engine/library.ts";
import { openEngine } from "../engine/native.ts";
import { type Machine, readMachine } from "../measure/machine.ts";
import { installedBundles } from "../service/bundles.ts";
import { DOMAINS } from "../service/domains.ts";
import { planModels } from "../service/models.ts";
import { systemClock } from "../std/clock.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { lookAtPostgres } from "../store/postgres/store.ts";
import { lookAtDatabase } from "../store/sqlite/store.ts";
import { certificateCheck } from "./doctor/certificate.ts";
import {
  bundleCheck,
  type Check,
  checkLines,
  green,
  kernelCheck,
  libraryCheck,
  lockCheck,
  machineChecks,
  red,
} from "./doctor/checks.ts";
import { dataFolder, folderCheck } from "./doctor/data-folder.ts";
import { type FatBinary, fatBinary } from "./doctor/fat-binary.ts";
import { gpuChecks } from "./doctor/gpu.ts";
import { providerChecks } from "./doctor/providers.ts";
import { runStorageCheck } from "./doctor/run-storage.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const doctor: Command = {
  name: "doctor",
  summary:
    "Check machine, GPU, libraries, bundles, data folder, run storage and language models; say what to do if one is red.",
  flags: {
    models: { value: "DIR", about: "Folder of bundles (default: that of serve)." },
    data: { value: "DIR", about: "Data folder (default: that of serve)." },
    config: { value: "FILE", about: "Configuration file (default: that of serve)." },
    json: { about: "Print the checks as one JSON object." },
  },
  async run(given) {
    const [models, data, config] = [given.text("models"), given.text("data"), given.text("config")];
    const settings = await serveConfig({ models, data, config, dev: false, json: false });
    const machine = await readMachine();
    const checks = machineChecks(machine);
    // On a wrong processor or C library the native library would crash this process instead of saying why.
    if (checks.every((check) => check.ok || check.name === "GPU")) {
      const served: Served = settings instanceof Problem ? { modelsDir: models, gpu: {}, robot: new Map() } : settings;
      checks.push(...(await engineChecks(served, machine)));
    }
    if (settings instanceof Problem) checks.push(red("configuration", settings.message));
    else {
      checks.push(folderCheck(await dataFolder(settings.dataDir)), await databaseCheck(settings));
      checks.push(await runStorageCheck(settings));
      if (settings.tls) checks.push(await certificateCheck(settings.tls));
      checks.push(...(await providerChecks(settings)));
    }
    const ok = checks.every((check) => check.ok);
    await answer(given, { ok, checks }, checkLines(checks, process.stdout.isTTY));
    return ok ? EXIT.done : EXIT.failed;
  },
};

async function databaseCheck({ dataDir, databaseUrl }: ServeConfig): Promise<Check> {
  const state =
    databaseUrl === undefined ? lookAtDatabase(DOMAINS, dataDir) : await lookAtPostgres(DOMAINS, databaseUrl);
  if (state instanceof Problem) return red("database", state.message);
  const where = databaseUrl === undefined ? "SQLite" : "PostgreSQL";
  const found = `${where}, ${state === "absent" ? "empty yet, filled at the first start" : "whole"}`;
  return green("database", found);
}

/** What of the configuration the bundles need. */
type Served = Pick<ServeConfig, "modelsDir" | "gpu" | "robot">;

/** Libraries, engine, and every bundle verified, loaded and run once on the device that is configured for it. */
async function engineChecks(served: Served, { lockableBytes, gpus }: Machine): Promise<Check[]> {
  const libraries = await locateLibraries();
  if (libraries instanceof Problem) return [red("libraries", libraries.message)];
  const checks = [libraryCheck(libraries.source, libraries.dir), kernelCheck(await kernelsOf(libraries.kernels))];
  const engine = await openEngine({ decodeThreads: Math.min(2, availableParallelism()) });
  if (engine instanceof Problem) return [...checks, red("engine", engine.message)];
  // The engine's callback does not keep the process alive while a model loads; a timer does.
  const release = systemClock.after(LOAD_MS_MAX, () => undefined);
  try {
    const { version, runtimeVersion, jpegVersion } = engine;
    const found = `${version}, ONNX Runtime ${runtimeVersion}, libjpeg-turbo ${jpegVersion}`;
    checks.push(green("engine", found));
    const devices = await readDevices();
    if (devices instanceof Problem) checks.push(red("devices", devices.message));
    else checks.push(...gpuChecks(devices, libraries.gpu, gpus));
    const told = devices instanceof Problem ? [] : devices.tried;
    checks.push(...(await bundleChecks(engine, served, told)));
    const { lockedBytes, tensorBytes } = engine.stats();
    if (tensorBytes > 0) checks.push(lockCheck(lockedBytes, tensorBytes, lockableBytes));
    return checks;
  } finally {
    await engine.close();
    release();
  }
}

async function kernelsOf(path: string | undefined): Promise<FatBinary | "absent" | "damaged"> {
  if (path === undefined) return "absent";
  return fatBinary(await Bun.file(path).bytes()) ?? "damaged";
}

/** Leaves the models loaded: their memory is checked next, and closing the engine unloads them. */
async function bundleChecks(
  engine: Engine,
  { modelsDir, gpu, robot }: Served,
  told: Devices["tried"],
): Promise<Check[]> {
  const bundles = await installedBundles(modelsDir);
  if (bundles instanceof Problem) return [red("bundles", bundles.message)];
  // Whether random weights and the device `echo` may be served is asked at the start of `serve`, not here.
  const plan = planModels(bundles, { gpu, robot, dev: true });
  if (plan instanceof Problem) return [red("bundles", plan.message)];
  const checks: Check[] = [];
  for (const options of plan) {
    const { manifest } = options.bundle;
    const { id } = manifest;
    const model = await engine.load(options);
    if (model instanceof Problem) checks.push(red(id, model.message));
    else checks.push(bundleCheck(manifest, model, told));
  }
  return checks;
}
