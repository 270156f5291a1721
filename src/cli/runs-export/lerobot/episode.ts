/**
 * One run as an episode of a dataset: a row per frame at a constant rate, and each camera's video.
 *
 * If the cameras have videos, rows are at the times of their frames. If the log names frames, a row is an observation and its
 * newest frame; the dataset's own times are then those of a constant rate, near to which the observations came.
 */
import { join } from "node:path";
import type { EpisodeHead, EpisodeObservation } from "../../../client/episode-log/format.ts";
import { openEpisode } from "../../../client/episode-log/read.ts";
import { present } from "../../../std/assert.ts";
import { Problem } from "../../../std/problem.ts";
import type { VideoFacts } from "../video/facts.ts";
import { jpegFacts } from "../video/jpeg-facts.ts";
import { mp4Facts } from "../video/mp4-read.ts";
import { Timeline } from "./timeline.ts";

/** The header of a JPEG file's frame stands within this number of bytes, behind the camera's own data. */
const JPEG_HEAD_BYTES = 256 * 1024;

export interface CameraVideo {
  readonly camera: string;
  readonly facts: VideoFacts;
  /** A video file of the run, or the paths of its JPEG files in the order of the rows. */
  readonly source: string | readonly string[];
}

interface EpisodeRow {
  readonly state: readonly number[];
  readonly action: readonly number[];
}

export interface RunEpisode {
  readonly folder: string;
  readonly head: EpisodeHead;
  readonly task: string;
  readonly fps: number;
  readonly rows: readonly EpisodeRow[];
  readonly videos: readonly CameraVideo[];
}

export interface ExportChoices {
  /** In place of the log's instruction. */
  readonly task: string | undefined;
  /** In place of the observations' own rate; where there are videos, theirs alone counts. */
  readonly fps: number | undefined;
}

export async function readRun(folder: string, choices: ExportChoices): Promise<RunEpisode | Problem> {
  const log = await openEpisode(folder);
  if (log instanceof Problem) return log;
  const { head } = log;
  const observations: EpisodeObservation[] = [];
  for await (const observation of log.observations) {
    if (observation instanceof Problem) return observation;
    observations.push(observation);
  }
  const refuse = (why: string) => new Problem(`'${folder}' cannot be exported: ${why}`);
  if (!observations.some(({ chunk }) => chunk !== null)) return refuse("no observation of it has a chunk");
  const task = choices.task ?? head.instruction;
  if (task === null) return refuse("its log has no instruction; say with --task what the robot did");
  const filmed = head.cameras.filter(({ video }) => video !== undefined);
  if (filmed.length > 0 && filmed.length < head.cameras.length)
    return refuse("some of its cameras have a video and others frames; a dataset needs one of the two");
  const told = { folder, head, observations, choices };
  const grid = await (filmed.length > 0 ? filmedGrid(told) : observedGrid(told));
  return grid instanceof Problem ? grid : { folder, head, task, ...grid };
}

interface Told {
  readonly folder: string;
  readonly head: EpisodeHead;
  readonly observations: readonly EpisodeObservation[];
  readonly choices: ExportChoices;
}

type Grid = Pick<RunEpisode, "fps" | "rows" | "videos">;

async function filmedGrid({ folder, head, observations, choices }: Told): Promise<Grid | Problem> {
  const videos: CameraVideo[] = [];
  for (const { name, video } of head.cameras) {
    const source = join(folder, present(video, "the video of a filmed camera"));
    const facts = await mp4Facts(source);
    if (facts instanceof Problem) return facts;
    videos.push({ camera: name, facts, source });
  }
  const { fps } = present(videos[0], "a filmed camera").facts;
  const other = videos.find(({ facts }) => Math.abs(facts.fps - fps) > 1e-3);
  if (other !== undefined)
    return new Problem(`'${folder}' cannot be exported: its videos have ${fps} and ${other.facts.fps} frames a second`);
  if (choices.fps !== undefined && Math.abs(choices.fps - fps) > 1e-3)
    return new Problem(
      `'${folder}' cannot be exported: --fps is ${choices.fps}, and its videos have ${fps}; leave --fps out`,
    );
  const timeline = new Timeline(head, observations);
  // A row needs a frame of every camera.
  const count = Math.min(...videos.map(({ facts }) => facts.frames));
  const rows = Array.from({ length: count }, (_, frame) => rowAt(timeline, frame / fps));
  return { fps, rows, videos };
}

async function observedGrid({ folder, head, observations, choices }: Told): Promise<Grid | Problem> {
  const fps = thousandths(choices.fps ?? rateOf(head, observations));
  const videos: CameraVideo[] = [];
  for (const { name } of head.cameras) {
    const source = observations.map(({ frames }) =>
      join(folder, present(frames?.[name]?.at(-1), "a frame of the camera")),
    );
    const facts = await sameFacts(source);
    if (facts instanceof Problem) return facts;
    videos.push({
      camera: name,
      facts: { ...facts, fps, frames: source.length, codec: "mjpeg", hasAudio: false },
      source,
    });
  }
  const timeline = new Timeline(head, observations);
  const rows = observations.map(({ t, state }) => ({ ...rowAt(timeline, t), state: state.map(Math.fround) }));
  return { fps, rows, videos };
}

/** The values as float32, in which they are stored. */
function rowAt(timeline: Timeline, seconds: number): EpisodeRow {
  return {
    state: timeline.stateAt(seconds).map(Math.fround),
    action: timeline.actionAt(seconds).map(Math.fround),
  };
}

/** The median rate of the observations; that of the rows for one alone. */
function rateOf(head: EpisodeHead, observations: readonly EpisodeObservation[]): number {
  const gaps = observations.slice(1).map(({ t }, index) => t - (observations[index]?.t ?? 0));
  const median = gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? head.action.dt;
  const rate = 1 / Math.max(median, 1e-3);
  return rate >= 10 ? Math.round(rate) : rate;
}

/** Rates of videos that are made here are kept so. */
function thousandths(fps: number): number {
  return Math.max(1, Math.round(fps * 1000)) / 1000;
}

/** What all JPEG files of a camera have in common, which is what a video needs. */
async function sameFacts(paths: readonly string[]): Promise<NonNullable<ReturnType<typeof jpegFacts>> | Problem> {
  let first: ReturnType<typeof jpegFacts>;
  for (const path of paths) {
    try {
      const facts = jpegFacts(await Bun.file(path).slice(0, JPEG_HEAD_BYTES).bytes());
      if (facts === undefined) return new Problem(`'${path}' is not a JPEG file of one or three colours`);
      first ??= facts;
      const [is, was] = [facts, first].map(({ width, height, pixels }) => `${width}x${height} ${pixels ?? ""}`);
      if (is !== was) return new Problem(`'${path}' is ${is}, the frames before it ${was}; one video cannot hold both`);
    } catch (error) {
      return new Problem(`cannot read '${path}': ${(error as Error).message}`);
    }
  }
  return present(first, "a frame");
}
