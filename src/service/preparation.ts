/**
 * What a start does beside the opening of its store, and what it then leaves to native threads while the event loop puts the service
 * together: neither needs records or a listener, and both take as long.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { folders } from "../config/environment.ts";
import type { ServeConfig } from "../config/serve.ts";
import type { Engine } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { LIMITS } from "../limits.ts";
import { keepDigests, recallDigests } from "../std/file-digest.ts";
import { Problem } from "../std/problem.ts";
import { installedBundles } from "./bundles.ts";
import { type BegunModel, planModels } from "./models.ts";

export interface Preparation {
  /** With its threads; closed by whoever takes it. */
  readonly engine: Promise<Engine | Problem>;
  /** Begins the loads, once every file is verified. A load cannot be stopped: none begins before the store is this process's own. */
  begin(): Promise<readonly BegunModel[] | Problem>;
}

/** In the cache folder: of the files that were verified, so that the next start need not read them unless they have changed. */
const DIGESTS_FILE = "digests.json";

/** Begins at once. Nothing is thrown: what goes wrong is a problem, or is thrown where it is awaited. */
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

/** Of a start that came to nothing before anybody has taken the engine. */
export async function discard({ engine }: Preparation): Promise<void> {
  const opened = await engine.catch(() => undefined);
  if (opened && !(opened instanceof Problem)) await opened.close();
}
