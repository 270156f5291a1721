/** A LeRobot dataset as pyarrow and FFmpeg read it. `python3` of PATH must have pyarrow. */
import { describe, expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { given } from "../../../src/cli/frame/command.ts";
import { exportRun } from "../../../src/cli/runs-export/command.ts";
import { EXIT, Problem } from "../../../src/std/problem.ts";
import { Folder, head, JPEG, observation, record } from "../../client/episode-log/sample-run.ts";
import { absent, makeVideo, probe, readTable, unpack } from "./python.ts";

async function runExport(...argv: string[]): Promise<number | Problem> {
  const parsed = given(exportRun, argv);
  return parsed instanceof Problem ? parsed : await exportRun.run(parsed);
}

const FIRST = "chunk-000/file-000";
const steps = (count: number) => Array.from({ length: count }, (_, step) => observation(step));

describe.skipIf(absent !== undefined)(absent === undefined ? "a dataset" : `a dataset: skipped, ${absent}`, () => {
  test("of a run with frames has a row per observation, and a video whose samples are these frames", async () => {
    await using folder = await Folder.make();
    const cut = (step: number) => Buffer.concat([JPEG, new Uint8Array(step)]);
    await record(folder.at("run"), head(), steps(5), cut);
    expect(await runExport(folder.at("run"), "--lerobot", folder.at("out"))).toBe(EXIT.done);

    const info = await Bun.file(folder.at("out/meta/info.json")).json();
    expect(info).toMatchObject({
      ...{ codebase_version: "v3.0", robot_type: null, total_episodes: 1, total_frames: 5, total_tasks: 1, fps: 2 },
      splits: { train: "0:1" },
      data_path: "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
      video_path: "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    });
    const [height, width] = info.features["observation.images.top"].shape;
    expect(info.features).toMatchObject({
      "observation.state": { dtype: "float32", shape: [2], names: ["elbow", "wrist"] },
      action: { dtype: "float32", shape: [2], names: ["elbow", "wrist"] },
      "observation.images.top": { dtype: "video", names: ["height", "width", "channels"] },
      timestamp: { dtype: "float32", shape: [1], names: null },
    });

    const { types, rows } = await readTable(folder.at(`out/data/${FIRST}.parquet`));
    expect(types).toEqual({
      ...{ "observation.state": "list<element: float>", action: "list<element: float>", timestamp: "float" },
      ...{ frame_index: "int64", episode_index: "int64", index: "int64", task_index: "int64" },
    });
    // At 0 s no chunk has started: the first row of the first one. Later, row 4 of the chunk before.
    expect(rows).toEqual(
      Array.from({ length: 5 }, (_, step) => ({
        ...{ "observation.state": [step, step / 4], action: step === 0 ? [0, 0] : [step - 1, 4], timestamp: step / 2 },
        ...{ frame_index: step, episode_index: 0, index: step, task_index: 0 },
      })),
    );

    const video = folder.at(`out/videos/observation.images.top/${FIRST}.mp4`);
    expect(await probe(video)).toMatchObject({
      ...{ codec_name: "mjpeg", pix_fmt: "yuvj420p", width, height, r_frame_rate: "2/1", nb_read_frames: "5" },
    });
    await mkdir(folder.at("samples"));
    await unpack(video, folder.at("samples"));
    for (let step = 0; step < 5; step += 1)
      expect(await Bun.file(folder.at(`samples/${step + 1}.jpg`)).bytes()).toEqual(new Uint8Array(cut(step)));
  });

  test("names its episode, its task and the statistics that policies normalise with", async () => {
    await using folder = await Folder.make();
    await record(folder.at("run"), head(), steps(5));
    expect(await runExport(folder.at("run"), "--lerobot", folder.at("out"), "--task", "point at it")).toBe(EXIT.done);
    const tasks = await readTable(folder.at("out/meta/tasks.parquet"));
    expect(tasks.rows).toEqual([{ task_index: 0, __index_level_0__: "point at it" }]);
    expect(tasks.pandas?.index_columns).toEqual(["__index_level_0__"]);
    const episodes = await readTable(folder.at(`out/meta/episodes/${FIRST}.parquet`));
    expect(episodes.rows).toMatchObject([
      {
        ...{ episode_index: 0, tasks: ["point at it"], length: 5, dataset_from_index: 0, dataset_to_index: 5 },
        ...{
          "data/chunk_index": 0,
          "data/file_index": 0,
          "meta/episodes/chunk_index": 0,
          "meta/episodes/file_index": 0,
        },
        "videos/observation.images.top/from_timestamp": 0,
        "videos/observation.images.top/to_timestamp": 2.5,
        "stats/observation.state/mean": [2, 0.5],
        "stats/observation.images.top/mean": [[[0.485]], [[0.456]], [[0.406]]],
      },
    ]);
    const stats = await Bun.file(folder.at("out/meta/stats.json")).json();
    expect(stats["observation.state"]).toMatchObject({
      ...{ min: [0, 0], max: [4, 1], mean: [2, 0.5], q50: [2, 0.5], q10: [0.4, 0.1], count: [5] },
      std: [Math.sqrt(2), Math.sqrt(2) / 4],
    });
    expect(stats.timestamp).toMatchObject({ min: [0], max: [2], count: [5] });
  });

  test("of runs with videos has them as they are, and a row per frame with the state and the row of that moment", async () => {
    await using folder = await Folder.make();
    const cameras = ["top", "side"].map((name) => ({ name, video: `videos/${name}.mp4` }));
    for (const run of ["one", "two"]) {
      await record(folder.at(run), head({ cameras, instruction: run }), steps(4));
      await mkdir(folder.at(`${run}/videos`));
      await makeVideo(folder.at(`${run}/videos/top.mp4`), { fps: 20, frames: 45 });
      await makeVideo(folder.at(`${run}/videos/side.mp4`), { fps: 20, frames: 41 });
    }
    expect(await runExport(folder.at("one"), folder.at("two"), "--lerobot", folder.at("out"))).toBe(EXIT.done);
    const info = await Bun.file(folder.at("out/meta/info.json")).json();
    expect(info).toMatchObject({ total_episodes: 2, total_frames: 82, total_tasks: 2, fps: 20 });
    expect(info.features["observation.images.side"].shape).toEqual([48, 64, 3]);
    for (const name of ["top", "side"]) {
      const copied = await Bun.file(folder.at(`out/videos/observation.images.${name}/chunk-000/file-001.mp4`)).bytes();
      expect(copied).toEqual(await Bun.file(folder.at(`two/videos/${name}.mp4`)).bytes());
    }
    const { rows } = await readTable(folder.at("out/data/chunk-000/file-001.parquet"));
    expect(rows).toHaveLength(41);
    expect(rows[0]).toMatchObject({
      "observation.state": [0, 0],
      action: [0, 0],
      index: 41,
      episode_index: 1,
      task_index: 1,
    });
    // At 0.55 s observation 1 was sent, and row 4 of chunk 0 is due; at 0.6 s chunk 1 starts.
    expect(rows[11]).toMatchObject({ "observation.state": [1, 0.25], action: [0, 4], frame_index: 11 });
    expect(rows[12]).toMatchObject({ action: [1, 0] });
    expect(rows[40]).toMatchObject({ "observation.state": [3, 0.75], action: [3, 4], timestamp: 2 });
  });

  test("has plain values where a vector has one value, and no video where there is no camera", async () => {
    await using folder = await Folder.make();
    const one = { space: "joint_position", names: ["grip"] };
    const chunk = { id: null, start: 0, actions: [[7]] };
    const lines = [0, 1, 2].map((step) => observation(step, { state: [step], chunk }));
    await record(folder.at("run"), head({ cameras: [], state: one, action: { ...one, dt: 0.1 } }), lines);
    expect(await runExport(folder.at("run"), "--lerobot", folder.at("out"), "--fps", "2.5")).toBe(EXIT.done);
    const { types, rows } = await readTable(folder.at(`out/data/${FIRST}.parquet`));
    expect(types).toMatchObject({ "observation.state": "float", action: "float" });
    expect(rows[2]).toMatchObject({ "observation.state": 2, action: 7, timestamp: Math.fround(0.8) });
    expect(await Bun.file(folder.at("out/meta/info.json")).json()).toMatchObject({ fps: 2.5, video_path: null });
  });
});

test("an export that cannot be made says why and leaves nothing", async () => {
  await using folder = await Folder.make();
  const refusal = async (name: string, ...flags: string[]) => {
    const end = await runExport(
      ...name.split(" ").map((run) => folder.at(run)),
      "--lerobot",
      folder.at("out"),
      ...flags,
    );
    expect(await Array.fromAsync(new Bun.Glob("out*/**").scan({ cwd: folder.path, onlyFiles: false }))).toEqual([]);
    return end instanceof Problem ? end.message : "it was exported";
  };
  await record(folder.at("silent"), head(), [observation(0, { chunk: null })]);
  await record(folder.at("untold"), head({ instruction: null }), steps(2));
  await record(folder.at("good"), head(), steps(2));
  await record(folder.at("faster"), head(), [observation(0), observation(1, { t: 0.1 })]);
  await record(folder.at("other"), head({ cameras: [{ name: "side" }] }), steps(2));
  await record(folder.at("mixed"), head({ cameras: [{ name: "a", video: "a.mp4" }, { name: "b" }] }), steps(2));
  const gray = await Bun.file("test/vectors/jpeg/gray.jpg").bytes();
  await record(folder.at("sizes"), head(), steps(2), (step) => (step === 0 ? JPEG : gray));
  await record(folder.at("noise"), head(), steps(2), () => new Uint8Array(20));
  await record(folder.at("film"), head({ cameras: [{ name: "a", video: "a.mp4" }] }), steps(2));
  expect(await refusal("nowhere")).toContain("cannot read");
  expect(await refusal("silent")).toContain("no observation of it has a chunk");
  expect(await refusal("untold")).toContain("--task");
  expect(await refusal("good faster")).toContain("differ in the rate of frames");
  expect(await refusal("good other")).toContain("differ in observation.images.top");
  expect(await refusal("mixed")).toContain("some of its cameras");
  expect(await refusal("sizes")).toContain("one video cannot hold both");
  expect(await refusal("noise")).toContain("is not a JPEG file");
  expect(await refusal("film")).toContain("a.mp4");
  await Bun.write(folder.at("film/a.mp4"), "no video at all");
  expect(await refusal("film")).toContain("cut off, or no MP4 file");
  await Bun.write(folder.at("full/x"), "x");
  const full = await runExport(folder.at("good"), "--lerobot", folder.at("full"));
  expect(full).toMatchObject({ exit: EXIT.failed, message: expect.stringContaining("is not empty") });
});

test("wrong use of runs export exits with 2", async () => {
  for (const argv of [
    [],
    ["run"],
    ["--lerobot", "out"],
    ["run", "--lerobot", "out", "--fps", "0"],
    ["run", "--lerobot", "out", "--fps", "x"],
  ])
    expect(await runExport(...argv)).toMatchObject({ exit: EXIT.usage });
});
