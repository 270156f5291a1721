/** A chunk as a robot gets it: over a WebSocket of a fresh service on this machine, from the first byte of its frames to the last row. */
import { link, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Bundle } from "../../bundle/read.ts";
import { withTolerance } from "../../bundle/read.ts";
import { frameMessage } from "../../client/episode-messages.ts";
import { EpisodeSocket } from "../../client/episode-socket.ts";
import type { GpuSettings } from "../../config/gpu.ts";
import { LOAD_MS_MAX } from "../../engine/engine.ts";
import { robotStateOf } from "../../robot/state.ts";
import { present } from "../../std/assert.ts";
import { sleep, systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { startChild } from "../child.ts";
import type { Observed } from "../inference.ts";
import { type Summary, summary } from "../stats.ts";
import { laterOf } from "./rounds.ts";

export interface SocketFigures {
  /** Frames and observation together. */
  readonly together: Summary;
  /** The observation alone: its frames were sent a while before, as cameras do. */
  readonly framesBefore: Summary;
}

const WARM_CHUNKS = 5;
/** Longer than a decode. */
const AHEAD_MS = 20;

/** `within`: the service holds the rows to this, in place of the bundle's tolerance. */
export async function socketFigures(
  bundle: Bundle,
  { device, gpu, within }: { readonly device: string; readonly gpu: GpuSettings; readonly within: number | undefined },
  episode: readonly Observed[],
  chunks: number,
): Promise<SocketFigures | Problem> {
  const { id } = bundle.manifest;
  const models = await folderWith(bundle, within);
  if (models instanceof Problem) return models;
  const lines = Object.entries(gpu).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  const configuration = lines.length === 0 ? "" : `[gpu]\n${lines.join("\n")}\n`;
  const child = await startChild({ device, model: id, modelsDir: models.dir, configuration, readyMsMax: LOAD_MS_MAX });
  try {
    if (child instanceof Problem) return child;
    const done = await overSocket(child.service, bundle, episode, chunks);
    return done instanceof Problem ? await child.explain(done) : done;
  } finally {
    if (!(child instanceof Problem)) await child.stop();
    await models.remove();
  }
}

async function overSocket(
  service: { readonly url: string; readonly apiKey: string },
  { manifest }: Bundle,
  episode: readonly Observed[],
  chunks: number,
): Promise<SocketFigures | Problem> {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) return socket;
  const { instruction } = present(episode[0], "an observation");
  const opened = await socket.open({ model: manifest.id, instruction, format: "f32" });
  if (opened instanceof Problem) return opened;
  const cameras = manifest.cameras.length;
  const messages = episode.map(({ jpegs }) =>
    jpegs.map((jpeg, at) => frameMessage(Math.floor((at * cameras) / jpegs.length), jpeg)),
  );
  const together: number[] = [];
  const framesBefore: number[] = [];
  for (let step = 0; step < WARM_CHUNKS + 2 * chunks; step += 1) {
    const observed = laterOf(episode, step);
    const ahead = step % 2 === 1;
    const fields = { robot_state: robotStateOf(manifest, observed.state) };
    let sentMs = systemClock.monotonicMs();
    for (const message of messages[episode.indexOf(observed)] ?? []) socket.frame(message);
    if (ahead) {
      await sleep(systemClock, AHEAD_MS);
      sentMs = systemClock.monotonicMs();
    }
    const chunk = await socket.observe(fields);
    if (chunk instanceof Problem) return chunk;
    if (step >= WARM_CHUNKS) (ahead ? framesBefore : together).push(systemClock.monotonicMs() - sentMs);
  }
  const closed = await socket.close();
  return closed ?? { together: summary(together), framesBefore: summary(framesBefore) };
}

interface ModelFolder {
  readonly dir: string;
  remove(): Promise<void>;
}

/** A folder of models with this bundle alone. `within`: the bound on its rows there, in place of the bundle's tolerance. */
async function folderWith(bundle: Bundle, within: number | undefined): Promise<ModelFolder | Problem> {
  const folder = dirname(present(bundle.paths.get(bundle.manifest.norm), "a file of the bundle"));
  // No link may lead out of a bundle. So one with another manifest has its files by a second name, which only their own disk can give.
  const parent = within === undefined ? tmpdir() : dirname(folder);
  let dir: string | undefined;
  const remove = async () => {
    if (dir !== undefined) await rm(dir, { recursive: true, force: true });
  };
  try {
    // A folder whose name begins with a dot is no bundle to a reader of the one above.
    dir = await mkdtemp(join(parent, ".tendon-bench-"));
    const to = join(dir, basename(folder));
    if (within === undefined) await symlink(folder, to);
    else await named(withTolerance(bundle, within), to);
    return { dir, remove };
  } catch (error) {
    await remove();
    return new Problem(`no folder of models could be made in ${parent}: ${(error as Error).message}`);
  }
}

async function named({ manifest, paths }: Bundle, to: string): Promise<void> {
  for (const [path, from] of paths) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await link(from, join(to, path));
  }
  await Bun.write(join(to, "manifest.json"), JSON.stringify(manifest));
}
