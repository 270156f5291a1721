/** A drawn episode: the log of a run, and its videos and frames by ffmpeg. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

export interface Episode {
  readonly observations: number;
  /** Seconds from one observation to the next. */
  readonly every: number;
  readonly dt: number;
  readonly rows: number;
  /** Path of each camera's video; undefined for one that has frames. */
  readonly cameras: Readonly<Record<string, string | undefined>>;
  readonly joints: readonly string[];
}

const EPISODE: Episode = {
  observations: 8,
  every: 0.5,
  dt: 1 / 30,
  rows: 20,
  cameras: { top: "videos/top.mp4", wrist: "videos/wrist.mp4" },
  joints: ["left_waist", "left_shoulder", "left_gripper"],
};

/** A chunk starts this long after its observation. */
const LATENCY_SECONDS = 0.06;

function stateAt(t: number, joint: number): number {
  return Math.sin(t * (0.7 + joint * 0.4) + joint);
}

export function episode(changes: Partial<Episode> = {}): Episode {
  return { ...EPISODE, ...changes };
}

export function headLine({ cameras, joints, dt }: Episode): string {
  return JSON.stringify({
    type: "episode",
    version: 1,
    model: "vendorB/molmoact2:yam",
    session_id: "s-1",
    instruction: "fold the <towel>",
    started_at: 1_700_000_000.25,
    cameras: Object.entries(cameras).map(([name, video]) => (video === undefined ? { name } : { name, video })),
    state: { space: "joint_position", names: joints },
    action: { space: "joint_position", names: joints, dt },
  });
}

export function observationLine(of: Episode, step: number): string {
  const { every, dt, rows, cameras, joints } = of;
  const t = step * every;
  const start = t + LATENCY_SECONDS;
  const framed = Object.entries(cameras).filter(([, video]) => video === undefined);
  return JSON.stringify({
    type: "observation",
    t,
    step,
    observation_id: `obs-${step}`,
    state: joints.map((_, joint) => stateAt(t, joint)),
    ...(framed.length > 0 && { frames: Object.fromEntries(framed.map(([name]) => [name, [framePath(name, step)]])) }),
    chunk: {
      id: `gen_${step}`,
      start,
      actions: Array.from({ length: rows }, (_, row) => joints.map((_, joint) => stateAt(start + row * dt, joint))),
    },
    latency_ms: 60 + step,
    timing_ms: { queue: 0.1, decode: 1.5, prefill: 20, denoise: 30.25, encode: 0.2 },
  });
}

export function logOf(of: Episode): string {
  const steps = Array.from({ length: of.observations }, (_, step) => observationLine(of, step));
  return `${[headLine(of), ...steps].join("\n")}\n`;
}

function framePath(camera: string, step: number): string {
  return `frames/${camera}/${String(step).padStart(6, "0")}.jpg`;
}

/** What the page shows of a moment: facts, and the second joint with its state and its action. */
export interface ShownRow {
  readonly step: string | null;
  readonly observation: string | null;
  readonly latency: string | null;
  readonly denoise: string | null;
  readonly actionRow: string | null;
  readonly joint: string[];
}

export function expectedRow(of: Episode, t: number): ShownRow {
  const step = Math.min(Math.floor(t / of.every + 1e-9), of.observations - 1);
  const sent = step * of.every;
  // The chunk of this observation comes a little later; until then the rows of the one before are due.
  const start = (t >= sent + LATENCY_SECONDS ? sent : sent - of.every) + LATENCY_SECONDS;
  const row = Math.floor((t - start) / of.dt + 1e-6);
  const due = start > 0 && row < of.rows;
  return {
    step: String(step),
    observation: `obs-${step}`,
    latency: `${60 + step}.0 ms`,
    denoise: "30.3 ms",
    actionRow: due ? `${row + 1} of ${of.rows}` : "none due",
    joint: [of.joints[1] ?? "", stateAt(sent, 1).toFixed(3), due ? stateAt(start + row * of.dt, 1).toFixed(3) : "–"],
  };
}

interface Drawn {
  readonly seconds: number;
  readonly fps: number;
}

/** An H.264 video in which every frame differs from the next. */
export async function drawVideo(file: string, { seconds, fps }: Drawn): Promise<void> {
  const source = `testsrc2=size=320x180:rate=${fps}:duration=${seconds}`;
  const coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", String(fps * 2), "-movflags", "+faststart"];
  await ffmpeg("-f", "lavfi", "-i", source, ...coded, file);
}

/** `count` JPEGs, numbered from 0. */
export async function drawFrames(folder: string, count: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const source = `testsrc2=size=320x180:rate=2:duration=${count / 2}`;
  await ffmpeg("-f", "lavfi", "-i", source, "-start_number", "0", "-q:v", "3", join(folder, "%06d.jpg"));
}

/** The RGB bytes of one frame, as ffmpeg decodes it. */
export async function frameOf(file: string, index: number): Promise<Uint8Array> {
  const select = ["-vf", `select=eq(n\\,${index})`, "-frames:v", "1"];
  return await ffmpeg("-i", file, ...select, "-f", "rawvideo", "-pix_fmt", "rgb24", "-");
}

async function ffmpeg(...words: string[]): Promise<Uint8Array> {
  const child = Bun.spawn(["ffmpeg", "-v", "error", "-y", ...words], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, problem, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`ffmpeg failed: ${problem}`);
  return out;
}
