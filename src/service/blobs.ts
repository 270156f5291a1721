/** The blobs of this program: where the configuration says, on a thread of their own. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ServeConfig } from "../config/serve.ts";
import type { Backend } from "../runs/blob/backend.ts";
import { Blobs, BlobsDown } from "../runs/blob/blobs.ts";
import { backendOf } from "../runs/blob/loop.ts";
import type { RunDeps } from "../runs/gate.ts";
import { randomBase62 } from "../std/ids.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { threadOf } from "./store.ts";

type Where = Pick<ServeConfig, "blobs" | "dataDir">;

export function makeBlobs({ blobs, dataDir }: Where): Blobs {
  return new Blobs(threadOf("blob-thread"), blobs ?? { kind: "folder", path: dataDir });
}

const NONCE_CHARS = 16;

/** The stored bytes for commands beside a service, without the thread. */
export function blobBackend({ blobs, dataDir }: Where): Promise<Backend> {
  return backendOf(blobs ?? { kind: "folder", path: dataDir }, () => randomBase62(NONCE_CHARS));
}

/** A folder that cannot be used ends the start. An object store may be away for a while: only the routes of run storage need it. */
export async function openBlobs(
  { blobs, ownership, log }: Pick<RunDeps, "blobs" | "ownership" | "log">,
  where: Where,
): Promise<Problem | undefined> {
  const staging = join(where.dataDir, "staging");
  const advice = "put its disk in order or give it room, then start again";
  const problem = (reason: string) =>
    new Problem(`the files of runs cannot be kept in ${where.dataDir}: ${reason}; ${advice}`);
  try {
    await mkdir(where.dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    return problem((error as Error).message);
  }
  blobs.whenEnded((reason) => {
    log.error("run storage is down until the next start", { reason, todo: "restart tendon, and report this line" });
  });
  const opening = blobs.open(staging);
  if (where.blobs === undefined) {
    const down = await opening;
    if (down instanceof BlobsDown) return problem(down.reason);
    await ownership.raise();
    const { missing } = ownership;
    return missing === undefined ? undefined : new Problem(`${join(where.dataDir, "blobs")}: ${missing}`, EXIT.usage);
  }
  opening
    .then(async (down) => {
      if (down) log.error("the object store of runs is not reached", { reason: down.reason });
      else await ownership.raise();
    })
    .catch((error: unknown) => log.error("run storage fault", { stack: String(error) }));
  return undefined;
}
