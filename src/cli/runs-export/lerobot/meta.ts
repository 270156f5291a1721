/** The files of a dataset's `meta/`: what it holds, its tasks, its episodes, and the statistics that policies normalise with. */
import { join } from "node:path";
import type { Feature } from "./features.ts";
import { type Column, writeParquet } from "./parquet.ts";
import { type Stats, together } from "./stats.ts";

const PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}";

/**
 * The colours of pictures are not decoded here. They get the range that decoded ones have, and ImageNet's mean and deviation, which
 * LeRobot puts in their place anyway unless it is told not to. Three channels, one row, one column.
 */
const PICTURE = {
  min: [[[0]], [[0]], [[0]]],
  max: [[[1]], [[1]], [[1]]],
  mean: [[[0.485]], [[0.456]], [[0.406]]],
  std: [[[0.229]], [[0.224]], [[0.225]]],
} as const;

export interface EpisodeRecord {
  readonly index: number;
  readonly task: string;
  readonly rows: number;
  /** Index of its first row in the dataset. */
  readonly from: number;
  readonly seconds: number;
  /** The numbers of the folder and the file that hold its rows. */
  readonly chunk: number;
  readonly file: number;
  /** The statistics of each feature that is no video. */
  readonly stats: ReadonlyMap<string, Stats>;
}

interface Meta {
  readonly out: string;
  readonly fps: number;
  readonly features: Readonly<Record<string, Feature>>;
  readonly tasks: readonly string[];
  readonly episodes: readonly EpisodeRecord[];
}

export async function writeMeta(meta: Meta): Promise<void> {
  const { out, tasks } = meta;
  await writeTasks(join(out, "meta/tasks.parquet"), tasks);
  await writeParquet(join(out, "meta/episodes/chunk-000/file-000.parquet"), episodeColumns(meta));
  await writeJson(join(out, "meta/stats.json"), statsJson(meta));
  await writeJson(join(out, "meta/info.json"), infoJson(meta));
}

async function writeJson(path: string, value: object): Promise<void> {
  await Bun.write(path, `${JSON.stringify(value, null, 4)}\n`);
}

function infoJson({ fps, features, tasks, episodes }: Meta): object {
  return {
    codebase_version: "v3.0",
    robot_type: null,
    total_episodes: episodes.length,
    total_frames: framesOf(episodes),
    total_tasks: tasks.length,
    chunks_size: 1000,
    data_files_size_in_mb: 100,
    video_files_size_in_mb: 200,
    fps,
    splits: { train: `0:${episodes.length}` },
    data_path: `data/${PLACE}.parquet`,
    video_path: videoKeys(features).length === 0 ? null : `videos/{video_key}/${PLACE}.mp4`,
    features,
  };
}

/** LeRobot looks tasks up by their text, which is the index of a pandas table; so pandas must find that there. */
async function writeTasks(path: string, tasks: readonly string[]): Promise<void> {
  const column = (name: string | null, field: string, pandas: string, numpy: string) => ({
    ...{ name, field_name: field, pandas_type: pandas, numpy_type: numpy, metadata: null },
  });
  const pandas = {
    index_columns: ["__index_level_0__"],
    column_indexes: [
      { ...column(null, "None", "unicode", "object"), metadata: { encoding: "UTF-8" }, field_name: null },
    ],
    columns: [
      column("task_index", "task_index", "int64", "int64"),
      column(null, "__index_level_0__", "unicode", "object"),
    ],
    creator: { library: "tendon", version: "1" },
    pandas_version: "2.0.0",
  };
  await writeParquet(
    path,
    [
      { name: "task_index", type: "int64", depth: 0, values: tasks.map((_, index) => index) },
      { name: "__index_level_0__", type: "string", depth: 0, values: tasks },
    ],
    [{ key: "pandas", value: JSON.stringify(pandas) }],
  );
}

function episodeColumns({ features, episodes }: Meta): Column[] {
  const column = (name: string, read: (episode: EpisodeRecord) => number, type: Column["type"] = "int64"): Column => {
    return { name, type, depth: 0, values: episodes.map(read) };
  };
  return [
    column("episode_index", ({ index }) => index),
    { name: "tasks", type: "string", depth: 1, values: episodes.map(({ task }) => [task]) },
    column("length", ({ rows }) => rows),
    column("data/chunk_index", ({ chunk }) => chunk),
    column("data/file_index", ({ file }) => file),
    column("dataset_from_index", ({ from }) => from),
    column("dataset_to_index", ({ from, rows }) => from + rows),
    ...videoKeys(features).flatMap((key) => [
      column(`videos/${key}/chunk_index`, ({ chunk }) => chunk),
      column(`videos/${key}/file_index`, ({ file }) => file),
      column(`videos/${key}/from_timestamp`, () => 0, "double"),
      column(`videos/${key}/to_timestamp`, ({ seconds }) => seconds, "double"),
    ]),
    ...statsColumns(features, episodes),
    column("meta/episodes/chunk_index", () => 0),
    column("meta/episodes/file_index", () => 0),
  ];
}

function statsColumns(features: Meta["features"], episodes: readonly EpisodeRecord[]): Column[] {
  const columns: Column[] = [];
  const counts = (key: string): Column => {
    return { name: `stats/${key}/count`, type: "int64", depth: 1, values: episodes.map(({ rows }) => [rows]) };
  };
  for (const [key, { dtype }] of Object.entries(features)) {
    const found = episodes.flatMap(({ stats }) => stats.get(key) ?? []);
    const measures =
      dtype === "video" ? Object.keys(PICTURE) : Object.keys(found[0] ?? {}).filter((name) => name !== "count");
    for (const name of measures) {
      const depth = dtype === "video" ? 3 : 1;
      const values =
        dtype === "video"
          ? episodes.map(() => PICTURE[name as keyof typeof PICTURE])
          : found.map((stats) => stats[name as keyof Stats]);
      columns.push({ name: `stats/${key}/${name}`, type: "double", depth, values });
    }
    columns.push(counts(key));
  }
  return columns;
}

function statsJson({ features, episodes }: Meta): object {
  const of = (key: string, { dtype }: Feature) =>
    dtype === "video"
      ? { ...PICTURE, count: [framesOf(episodes)] }
      : together(episodes.flatMap(({ stats }) => stats.get(key) ?? []));
  return Object.fromEntries(Object.entries(features).map(([key, feature]) => [key, of(key, feature)]));
}

function videoKeys(features: Meta["features"]): string[] {
  return Object.keys(features).filter((key) => features[key]?.dtype === "video");
}

function framesOf(episodes: readonly EpisodeRecord[]): number {
  return episodes.reduce((sum, { rows }) => sum + rows, 0);
}
