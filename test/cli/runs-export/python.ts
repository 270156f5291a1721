/** What reads an exported dataset beside us: pyarrow of PyPI for its tables, FFmpeg for its videos. */
import { testRequirement } from "../../../src/config/environment.ts";

const PYTHON = "python3";

const hasPyarrow =
  Bun.which(PYTHON) !== null &&
  Bun.spawnSync([PYTHON, "-c", "import pyarrow.parquet"], { stderr: "ignore" }).exitCode === 0;
const hasFfmpeg = ["ffmpeg", "ffprobe"].every((name) => Bun.which(name) !== null);

/** Why datasets cannot be read here; undefined when they can, or when that must not be a reason. */
export const absent =
  (hasPyarrow && hasFfmpeg) || testRequirement() === "all"
    ? undefined
    : `${hasPyarrow ? "there is no ffmpeg" : "python3 has no pyarrow; in a virtual environment whose bin is first in PATH, pip install pyarrow==26.0.1"}`;

/** What a command prints. */
async function said(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0 || errors !== "") throw new Error(`${command[0]}: ${errors || "it failed"}`);
  return out;
}

export interface Table {
  /** Arrow's names of the columns' types. */
  readonly types: Readonly<Record<string, string>>;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** The entry of this name in the file's key-value metadata. */
  readonly pandas: { index_columns: string[] } | null;
}

const READ = `
import json, sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
pandas = (table.schema.metadata or {}).get(b"pandas")
print(json.dumps({
    "types": {field.name: str(field.type) for field in table.schema},
    "rows": table.to_pylist(),
    "pandas": json.loads(pandas) if pandas else None,
}))`;

export async function readTable(path: string): Promise<Table> {
  return JSON.parse(await said(PYTHON, "-c", READ, path));
}

export interface Stream {
  readonly codec_name: string;
  readonly pix_fmt: string;
  readonly width: number;
  readonly height: number;
  readonly r_frame_rate: string;
  /** Frames that could be decoded. */
  readonly nb_read_frames: string;
}

export async function probe(path: string): Promise<Stream | undefined> {
  const entries = "stream=codec_name,pix_fmt,width,height,r_frame_rate,nb_read_frames";
  const text = await said("ffprobe", "-v", "error", "-count_frames", "-show_entries", entries, "-of", "json", path);
  return JSON.parse(text).streams[0];
}

/** The samples of a motion JPEG video as files in `folder`. */
export async function unpack(path: string, folder: string): Promise<void> {
  await said("ffmpeg", "-v", "error", "-i", path, "-c", "copy", "-f", "image2", `${folder}/%d.jpg`);
}

/** A video of moving bars. */
export async function makeVideo(path: string, { fps, frames }: { fps: number; frames: number }): Promise<void> {
  const source = `testsrc=size=64x48:rate=${fps}`;
  const coding = ["-frames:v", `${frames}`, "-c:v", "mpeg4", "-bf", "2"];
  await said("ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, ...coding, path);
}
