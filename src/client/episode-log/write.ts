/**
 * Writing a run's folder as the episode goes: `episode.jsonl`, and each frame as it was sent, in `frames/CAMERA/NNNNNN.jpg`.
 *
 * Calls return at once and are written one after the other in the background, an observation's frames before its line: after
 * a crash the log ends with a whole line whose frames are all there. The first problem ends the recording and is what `end` returns.
 */
import { access, constants, type FileHandle, mkdir, open, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { CAMERA_NAME, EPISODE_FILE, type EpisodeHead, type EpisodeObservation } from "./format.ts";

/** Waiting to be written. A robot sends about 0.3 MB a second, so a disk that gets so far behind does not catch up. */
const WAITING_BYTES_MAX = 128 * 1024 * 1024;

/** JPEG files of each camera by its name, oldest first. */
export type CameraFrames = ReadonlyMap<string, readonly Uint8Array[]>;

interface FrameFile {
  readonly path: string;
  readonly jpeg: Uint8Array;
}

export class EpisodeWriter {
  /** The next number of each camera's frames. */
  private readonly counts = new Map<string, number>();
  private tail: Promise<void> = Promise.resolve();
  private problem: Problem | undefined;
  private waitingBytes = 0;
  private begun = false;
  private broken = false;

  /** Opened with the first line: an episode that never begins leaves no file. */
  private log: FileHandle | undefined;

  private constructor(readonly folder: string) {}

  /** Makes the folder; one that holds anything is refused, because a run is one episode. */
  static async claim(folder: string): Promise<EpisodeWriter | Problem> {
    try {
      await mkdir(folder, { recursive: true });
      if ((await readdir(folder)).length > 0)
        return new Problem(`'${folder}' is not empty; a run is recorded into a folder of its own, name a new one`);
      await access(folder, constants.W_OK);
      return new EpisodeWriter(folder);
    } catch (error) {
      return new Problem(
        `cannot record to '${folder}': ${(error as Error).message}; name a folder that you may write to`,
      );
    }
  }

  /** Whether the head has been written. */
  get hasBegun(): boolean {
    return this.begun;
  }

  begin(head: Omit<EpisodeHead, "type" | "version">): void {
    assert(!this.begun, "an episode has one head");
    this.begun = true;
    const strange = head.cameras.find(({ name }) => !CAMERA_NAME.test(name));
    if (strange !== undefined)
      this.fail(`a camera's name may hold letters, digits, '.', '_' and '-', not '${strange.name}'`);
    this.put({ type: "episode", version: 1, ...head }, []);
  }

  observe(observation: Omit<EpisodeObservation, "type" | "frames">, frames: CameraFrames): void {
    assert(this.begun, "the head is the first line");
    const files: FrameFile[] = [];
    const named: Record<string, string[]> = {};
    for (const [camera, jpegs] of frames) {
      const written = jpegs.map((jpeg) => ({ path: this.next(camera), jpeg }));
      named[camera] = written.map(({ path }) => path);
      files.push(...written);
    }
    const { t, step, observation_id, state, ...answer } = observation;
    if (![...state, ...(answer.chunk?.actions.flat() ?? [])].every(Number.isFinite))
      this.fail(`observation ${step} has a number that is not finite, which JSON cannot say`);
    const line = { type: "observation", t, step, observation_id, state };
    this.put({ ...line, ...(frames.size === 0 ? {} : { frames: named }), ...answer }, files);
  }

  /** When all is written, what went wrong. Nothing may be written after it. */
  async end(): Promise<Problem | undefined> {
    await this.tail;
    try {
      await this.log?.datasync();
      await this.log?.close();
    } catch (error) {
      this.fail((error as Error).message);
    }
    return this.problem;
  }

  private next(camera: string): string {
    const count = this.counts.get(camera) ?? 0;
    this.counts.set(camera, count + 1);
    return `frames/${camera}/${String(count).padStart(6, "0")}.jpg`;
  }

  private put(line: object, files: readonly FrameFile[]): void {
    if (this.problem !== undefined) return;
    const text = `${JSON.stringify(line)}\n`;
    const bytes = files.reduce((sum, { jpeg }) => sum + jpeg.length, text.length);
    if (this.waitingBytes + bytes > WAITING_BYTES_MAX) {
      this.fail("the disk is too slow for it");
      return;
    }
    this.waitingBytes += bytes;
    this.tail = this.tail
      .then(() => this.write(text, files))
      .finally(() => {
        this.waitingBytes -= bytes;
      });
  }

  private async write(text: string, files: readonly FrameFile[]): Promise<void> {
    // What was put before a problem is still written, unless it is the disk that fails.
    if (this.broken) return;
    try {
      for (const { path, jpeg } of files) {
        if (path.endsWith("/000000.jpg")) await mkdir(join(this.folder, path, ".."), { recursive: true });
        await writeFile(join(this.folder, path), jpeg, { flag: "wx" });
      }
      this.log ??= await open(join(this.folder, EPISODE_FILE), "wx");
      await this.log.appendFile(text);
    } catch (error) {
      this.broken = true;
      this.fail((error as Error).message);
    }
  }

  private fail(why: string): void {
    this.problem ??= new Problem(`the recording in '${this.folder}' is not whole: ${why}`);
  }
}
