/** `tendon doctor`: is this machine able to serve, what would the service run on, and what to do about each red line. */
import { availableParallelism } from "node:os";
import { type ServeConfig, serveConfig } from "../config/serve.ts";
import { type Devices, readDevices } from "../engine/devices.ts";
import type { Engine } from "../engine/engine.ts";
import { locateLibraries } from "../engine/library.ts";
import { type CertificateFiles, readCertificate } from "../http/certificate.ts";
import { withEngine } from "../measure/engine.ts";
import { type Machine, readMachine } from "../measure/machine.ts";
import { installedBundles } from "../service/bundles.ts";
import { planModels } from "../service/models.ts";
import { systemClock } from "../std/clock.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { lookAtPostgres } from "../store/postgres/store.ts";
import { lookAtDatabase } from "../store/sqlite/store.ts";
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
import { gpuChecks } from "./doctor/gpu.ts";
import { providerChecks } from "./doctor/providers.ts";
import { dataFolder, folderCheck, runStorageCheck } from "./doctor/storage.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";
import { CONFIG_FLAG, DATA_FLAG, flagsOf, MODELS_FLAG } from "./frame/settings.ts";

const DAY_MS = 86_400_000;
/** A renewal is late when fewer days are left: tools renew some weeks before the end. */
const SOON_DAYS = 14;

export const doctor: Command = {
  name: "doctor",
  summary:
    "Check machine, GPU, libraries, bundles, data folder, run storage and language models; say what to do if one is red.",
  flags: {
    models: MODELS_FLAG,
    data: DATA_FLAG,
    config: CONFIG_FLAG,
    json: { about: "Print the checks as one JSON object." },
  },
  async run(given) {
    const settings = await serveConfig(flagsOf(given, false));
    const machine = await readMachine();
    const checks = machineChecks(machine);
    // On a wrong processor or C library the native library would crash this process instead of saying why.
    if (checks.every((check) => check.ok || check.name === "GPU")) {
      const served: BundleSettings =
        settings instanceof Problem ? { modelsDir: given.text("models"), gpu: {}, robot: new Map() } : settings;
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
  const state = databaseUrl === undefined ? lookAtDatabase(dataDir) : await lookAtPostgres(databaseUrl);
  if (state instanceof Problem) return red("database", state.message);
  const where = databaseUrl === undefined ? "SQLite" : "PostgreSQL";
  const found = `${where}, ${state === "absent" ? "empty yet, filled at the first start" : "whole"}`;
  return green("database", found);
}

/** A right pair of files that has not expired. */
async function certificateCheck(files: CertificateFiles): Promise<Check> {
  const read = await readCertificate(files);
  if (read instanceof Problem) return red("TLS", read.message);
  const day = new Date(read.expiresMs).toISOString().slice(0, 10);
  const days = Math.floor((read.expiresMs - systemClock.unixMs()) / DAY_MS);
  if (days < 0)
    return red("TLS", `the certificate expired on ${day}; replace its files, the service reads them by itself`);
  const note = days < SOON_DAYS ? "replace its files soon, the service reads them by itself" : undefined;
  return green("TLS", `the certificate is good until ${day}, ${days} days`, note);
}

/** What of the configuration the bundles need. */
type BundleSettings = Pick<ServeConfig, "modelsDir" | "gpu" | "robot">;

/** Libraries, engine, and every bundle verified, loaded and computed once on the device that is configured for it. */
async function engineChecks(served: BundleSettings, { lockableBytes, gpus }: Machine): Promise<Check[]> {
  const libraries = await locateLibraries();
  if (libraries instanceof Problem) return [red("libraries", libraries.message)];
  const checks = [libraryCheck(libraries.source, libraries.dir), kernelCheck(libraries.kernels !== undefined)];
  const opened = await withEngine(Math.min(2, availableParallelism()), async (engine) => {
    const { version, runtimeVersion, jpegVersion } = engine;
    const found = `${version}, ONNX Runtime ${runtimeVersion}, libjpeg-turbo ${jpegVersion}`;
    checks.push(green("engine", found));
    const devices = await readDevices();
    if (devices instanceof Problem) checks.push(red("devices", devices.message));
    else checks.push(...gpuChecks(devices, libraries.gpu, gpus));
    const told = devices instanceof Problem ? [] : devices.tried;
    checks.push(...(await bundleChecks(engine, served, told)));
    const { locked_bytes: lockedBytes, tensor_bytes: tensorBytes } = engine.stats();
    if (tensorBytes > 0) checks.push(lockCheck(lockedBytes, tensorBytes, lockableBytes));
    return checks;
  });
  return opened instanceof Problem ? [...checks, red("engine", opened.message)] : opened;
}

/** Leaves the models loaded: their memory is checked next, and closing the engine unloads them. */
async function bundleChecks(
  engine: Engine,
  { modelsDir, gpu, robot }: BundleSettings,
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
