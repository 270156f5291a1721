/**
 * A LeRobot dataset, version 3.0, of one or more runs: an episode each, with its own files for rows and videos.
 * Everything of an episode is written before the next one is read; the files of `meta/`, which make it a dataset, come last.
 */
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { present } from "../../../std/assert.ts";
import { Problem } from "../../../std/problem.ts";
import { writeMotionJpeg } from "../video/mp4-write.ts";
import { type CameraVideo, type ExportChoices, type RunEpisode, readRun } from "./episode.ts";
import { featuresOf, videoKey } from "./features.ts";
import { type EpisodeRecord, writeMeta } from "./meta.ts";
import { type Column, writeParquet } from "./parquet.ts";
import { statsOf } from "./stats.ts";

/** Files of one folder; LeRobot's own number. */
const FOLDER_FILES = 1000;

export interface Dataset {
  readonly episodes: number;
  readonly frames: number;
  readonly fps: number;
  readonly cameras: readonly string[];
  readonly tasks: readonly string[];
}

/** Writes the dataset into `out`, which is empty. A problem leaves a part of it there. */
export async function writeDataset(
  runs: readonly string[],
  out: string,
  choices: ExportChoices,
): Promise<Dataset | Problem> {
  const records: EpisodeRecord[] = [];
  const tasks: string[] = [];
  let first: RunEpisode | undefined;
  let frames = 0;
  for (const [index, folder] of runs.entries()) {
    const episode = await readRun(folder, choices);
    if (episode instanceof Problem) return episode;
    first ??= episode;
    const differs = difference(first, episode);
    if (differs !== undefined) return differs;
    if (!tasks.includes(episode.task)) tasks.push(episode.task);
    const record = await writeEpisode(episode, out, { index, from: frames, task: tasks.indexOf(episode.task) });
    if (record instanceof Problem) return record;
    records.push(record);
    frames += episode.rows.length;
  }
  const { fps, videos, ...model } = present(first, "a run");
  await writeMeta({ out, fps, features: featuresOf({ fps, videos, ...model }), tasks, episodes: records });
  return { episodes: records.length, frames, fps, cameras: videos.map(({ camera }) => camera), tasks };
}

interface Place {
  readonly index: number;
  /** Index of its first row in the dataset. */
  readonly from: number;
  readonly task: number;
}

async function writeEpisode(episode: RunEpisode, out: string, place: Place): Promise<EpisodeRecord | Problem> {
  const [chunk, file] = [Math.floor(place.index / FOLDER_FILES), place.index % FOLDER_FILES];
  const { rows, fps, task, videos } = episode;
  const frames = rows.map((_, frame) => frame);
  const numbers = {
    timestamp: frames.map((frame) => Math.fround(frame / fps)),
    frame_index: frames,
    episode_index: frames.map(() => place.index),
    index: frames.map((frame) => place.from + frame),
    task_index: frames.map(() => place.task),
  };
  const vectors = { "observation.state": rows.map(({ state }) => state), action: rows.map(({ action }) => action) };
  const columns = [
    ...Object.entries(vectors).map(([name, values]) => vectorColumn(name, values)),
    ...Object.entries(numbers).map(([name, values]): Column => {
      return { name, type: name === "timestamp" ? "float" : "int64", depth: 0, values };
    }),
  ];
  const at = `chunk-${padded(chunk)}/file-${padded(file)}`;
  try {
    await writeParquet(join(out, `data/${at}.parquet`), columns);
    for (const video of videos) await writeVideo(video, join(out, `videos/${videoKey(video.camera)}/${at}.mp4`));
  } catch (error) {
    return new Problem(`cannot write the dataset to '${out}': ${(error as Error).message}`);
  }
  const scalars = Object.entries(numbers).map(([name, values]) => [name, values.map((value) => [value])] as const);
  const stats = [...Object.entries(vectors), ...scalars].map(([name, values]) => [name, statsOf(values)] as const);
  return { ...place, task, rows: rows.length, seconds: rows.length / fps, chunk, file, stats: new Map(stats) };
}

/** A vector of one value is a plain value in LeRobot's tables. */
function vectorColumn(name: string, values: readonly (readonly number[])[]): Column {
  const plain = values[0]?.length === 1;
  return { name, type: "float", depth: plain ? 0 : 1, values: plain ? values.map(([value]) => value) : values };
}

async function writeVideo({ facts, source }: CameraVideo, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  if (typeof source === "string") await Bun.write(path, Bun.file(source));
  else await writeMotionJpeg({ path, jpegs: filesOf(source), fps: facts.fps, facts });
}

async function* filesOf(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const path of paths) yield await Bun.file(path).bytes();
}

function padded(index: number): string {
  return String(index).padStart(3, "0");
}

/** Episodes of one dataset have the same features at the same rate. */
function difference(first: RunEpisode, other: RunEpisode): Problem | undefined {
  const [one, two] = [featuresOf(first), featuresOf(other)];
  const differs = [...new Set([...Object.keys(one), ...Object.keys(two)])].find(
    (key) => !Bun.deepEquals(one[key], two[key]),
  );
  const what = first.fps === other.fps ? differs : "the rate of frames";
  if (what === undefined) return undefined;
  return new Problem(
    `'${first.folder}' and '${other.folder}' differ in ${what}; export them to datasets of their own${first.fps === other.fps ? "" : ", or give --fps"}`,
  );
}
