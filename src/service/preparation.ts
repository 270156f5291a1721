/** What a start does beside the opening of its store: it needs neither records nor a listener, and takes as long. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { keepDigests, recallDigests } from "../bundle/file-digest.ts";
import { readBundles, readShipped } from "../bundle/read.ts";
import { folders } from "../config/environment.ts";
import type { ServeConfig } from "../config/serve.ts";
import type { Bundle, Engine } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { Problem } from "../error/problem.ts";
import { LIMITS } from "../limits.ts";

export interface Preparation {
  /** With its threads; closed by whoever takes it. */
  readonly engine: Promise<Engine | Problem>;
  /** Every file verified. */
  readonly bundles: Promise<readonly Bundle[] | Problem>;
}

/** In the cache folder: of the files that were verified, so that the next start need not read them unless they have changed. */
const DIGESTS_FILE = "digests.json";

/** Begins at once. Nothing is thrown: what goes wrong is a problem, or is thrown where it is awaited. */
export function prepare({ modelsDir }: Pick<ServeConfig, "modelsDir">): Preparation {
  const digests = join(folders().cache, DIGESTS_FILE);
  const recalled = recallDigests(digests);
  const engine = recalled.then(() =>
    openEngine({ decodeThreads: Math.min(availableParallelism(), LIMITS.decodeThreadsMax) }),
  );
  const bundles = recalled.then(() => (modelsDir === undefined ? readShipped() : readBundles(modelsDir)));
  for (const begun of [engine, bundles]) begun.catch(() => {});
  bundles.then(() => keepDigests(digests)).catch(() => {});
  return { engine, bundles };
}

/** Of a start that came to nothing before anybody has taken the engine. */
export async function discard({ engine }: Preparation): Promise<void> {
  const opened = await engine.catch(() => undefined);
  if (opened && !(opened instanceof Problem)) await opened.close();
}
