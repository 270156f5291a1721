/** A robot as a client has it: frames, state, and an episode over HTTP. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import type { ActionChunk } from "../../src/client/chunk.ts";
import { requestBody } from "../../src/client/request.ts";
import { chunkOf, type Server } from "./program.ts";

/** What a robot must know of a model; the rest is in the replies. */
export interface RobotFacts {
  readonly model: string;
  readonly cameras: number;
  readonly first: number;
  readonly later: number;
  readonly rows: number;
  readonly columns: number;
  readonly cartesian: boolean;
}

function facts(model: string, rows: number, changes: Partial<RobotFacts> = {}): RobotFacts {
  return { model, rows, cameras: 3, first: 1, later: 1, columns: 14, cartesian: false, ...changes };
}

/** The contract's table. */
export const ROBOTS: readonly RobotFacts[] = [
  facts("vendorA/dreamzero-astra:yam", 24, { later: 4 }),
  facts("vendorF/picasso:yam", 25),
  facts("vendorB/molmoact2:yam", 30),
  facts("vendorC/rho:yam", 25, { cartesian: true, columns: 20 }),
  facts("vendorD/isaac-0.5:yam", 25),
  facts("vendorE/pi0.5:yam", 25),
];

const VIDEOS = ["exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"];
const FIXTURES = join(import.meta.dir, "../../../shared/fixtures");

/** Frames of each camera, oldest first: those of the shared videos, or drawn ones where these or ffmpeg are not there. */
export async function footage(count: number): Promise<{ cameras: Uint8Array[][]; real: boolean }> {
  const shared = await readdir(FIXTURES).catch((): string[] => []);
  const ffmpeg = Bun.which("ffmpeg");
  if (!ffmpeg || !VIDEOS.every((name) => shared.includes(`${name}.mp4`)))
    return { cameras: await drawn(count), real: false };
  const cameras = VIDEOS.map(async (name) => {
    const dir = await mkdtemp(join(tmpdir(), "tendon-video-"));
    const from = ["-i", join(FIXTURES, `${name}.mp4`), "-frames:v", String(count), "-q:v", "4"];
    const child = Bun.spawn([ffmpeg, "-v", "error", ...from, join(dir, "%04d.jpg")]);
    if ((await child.exited) !== 0) throw new Error(`ffmpeg cannot read ${name}`);
    const files = (await readdir(dir)).sort();
    const jpegs = await Promise.all(files.map((file) => Bun.file(join(dir, file)).bytes()));
    await rm(dir, { recursive: true });
    return jpegs;
  });
  return { cameras: await Promise.all(cameras), real: true };
}

/** A ball that moves over a table, seen by three cameras. */
async function drawn(count: number): Promise<Uint8Array[][]> {
  const frame = (camera: number, moment: number) => {
    const [x, y] = [40 + ((moment * 7 + camera * 50) % 240), 90 + 40 * Math.sin(moment / 5 + camera)];
    const picture = `<svg width="320" height="180"><rect width="320" height="180" fill="hsl(${camera * 40 + 20} 40% 45%)"/>
      <rect x="${camera * 30}" y="120" width="90" height="60" fill="#654"/><circle cx="${x}" cy="${y}" r="22" fill="#c33"/></svg>`;
    return sharp(Buffer.from(picture)).jpeg({ quality: 85 }).toBuffer();
  };
  const camera = (index: number) => Promise.all(Array.from({ length: count }, (_, moment) => frame(index, moment)));
  return await Promise.all([0, 1, 2].map(camera));
}

/** `robot_state` at a step: the arms move a little. */
function stateAt({ cartesian }: RobotFacts, step: number): object {
  const sway = 0.05 * Math.sin(step / 4);
  if (!cartesian) {
    return { joint_position: Array.from({ length: 12 }, (_, i) => 0.3 + sway * (i % 3)), gripper_position: [0.5, 1] };
  }
  const arm = [0.35 + sway, 0.1, 0.25, 1, 0, 0, 0, 1, 0];
  return { gripper_position: [5, 2 + sway], cartesian_position: [...arm, ...arm] };
}

/** The body of one observation; `frames` are camera-major, oldest first. */
export function observe(robot: RobotFacts, step: number, frames: readonly Uint8Array[], extra: object = {}): object {
  const request = { model: robot.model, instruction: "fold the towel", frames, state: stateAt(robot, step) };
  return { ...requestBody(request), ...extra };
}

/** The frames of a step, from footage that goes round. */
export function framesAt({ first, later }: RobotFacts, step: number, cameras: readonly Uint8Array[][]): Uint8Array[] {
  const start = step === 0 ? 0 : first + (step - 1) * later;
  const count = step === 0 ? first : later;
  return cameras.flatMap((frames) =>
    Array.from({ length: count }, (_, i) => frames[(start + i) % frames.length] ?? new Uint8Array()),
  );
}

export interface Step {
  readonly actions: ActionChunk["actions"];
  readonly step: number;
  readonly reset: boolean;
  readonly next: number;
}

/** Runs an episode; each chunk must be the next one. */
export async function episode(
  server: Server,
  robot: RobotFacts,
  steps: number,
  cameras: readonly Uint8Array[][],
  extra: object = {},
): Promise<Step[]> {
  const chunks: Step[] = [];
  for (let step = 0; step < steps; step += 1) {
    const body = observe(robot, step, framesAt(robot, step, cameras), { expected_step: step, ...extra });
    const response = await server.post(JSON.stringify(body));
    if (response.status !== 200) throw new Error(`${robot.model}, step ${step}: ${await response.text()}`);
    const chunk = await chunkOf(response);
    chunks.push({
      actions: chunk.actions,
      step: chunk.step,
      reset: chunk.cache_reset === true,
      next: chunk.next_frames_per_camera,
    });
  }
  return chunks;
}
