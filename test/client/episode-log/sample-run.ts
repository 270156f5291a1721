/** Runs as a robot would record them, small: what the tests of the log and of its export write and read. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EpisodeHead, EpisodeObservation } from "../../../src/client/episode-log/format.ts";

/** A folder that is gone at the end of the test. */
export class Folder implements AsyncDisposable {
  private constructor(readonly path: string) {}

  static async make(): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), "tendon-run-")));
  }

  at(name: string): string {
    return join(this.path, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

export const JPEG = await Bun.file("test/vectors/jpeg/420.jpg").bytes();

export function head(changes: Partial<EpisodeHead> = {}): EpisodeHead {
  return {
    type: "episode",
    version: 1,
    model: "vendorB/molmoact2:yam",
    session_id: "s",
    instruction: "wave",
    started_at: 1_700_000_000.5,
    cameras: [{ name: "top" }],
    state: { space: "joint_position", names: ["elbow", "wrist"] },
    action: { space: "joint_position", names: ["elbow", "wrist"], dt: 0.1 },
    ...changes,
  };
}

/** Observation `step`, sent every half second; its ten rows begin 0.1 s later and say step and row. */
export function observation(step: number, changes: Partial<EpisodeObservation> = {}): EpisodeObservation {
  return {
    type: "observation",
    t: step / 2,
    step,
    observation_id: `${step}`,
    state: [step, step / 4],
    chunk: { id: null, start: step / 2 + 0.1, actions: Array.from({ length: 10 }, (_, row) => [step, row]) },
    latency_ms: 20,
    timing_ms: { queue: 1, decode: 2, prefill: 3, denoise: 4, encode: 5 },
    ...changes,
  };
}

/** Writes a run to a new folder at `path`; each camera without a video has a frame with each of the lines. */
export async function record(
  path: string,
  first: EpisodeHead,
  lines: readonly EpisodeObservation[],
  frame: (step: number) => Uint8Array = () => JPEG,
): Promise<void> {
  const cameras = first.cameras.filter(({ video }) => video === undefined).map(({ name }) => name);
  const framed = lines.map((line, at) => {
    const files = cameras.map((name) => [name, [`frames/${name}/${String(at).padStart(6, "0")}.jpg`]] as const);
    return cameras.length === 0 ? line : { ...line, frames: Object.fromEntries(files) };
  });
  for (const { step, frames = {} } of framed) {
    for (const [file = ""] of Object.values(frames)) await Bun.write(join(path, file), frame(step));
  }
  const text = [first, ...framed].map((line) => `${JSON.stringify(line)}\n`).join("");
  await Bun.write(join(path, "episode.jsonl"), text);
}
