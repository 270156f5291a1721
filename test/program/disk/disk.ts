/** A folder on a disk that fails as a test says, under the processes that are started with `environment` (shim.c). */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { access, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { testRequirement } from "../../../src/config/environment.ts";
import { type Operation, operationsOf } from "./journal.ts";

const SOURCE = join(import.meta.dir, "shim.c");
/** In memory where that can be: what is tried is the order of calls, not the time that a real disk takes. */
const MEMORY = "/dev/shm";

/** Why nothing can be tried here; undefined: it can, or must. */
export const DISK_ABSENT =
  process.platform === "linux" && process.arch === "x64" && Bun.which("cc") !== null
    ? undefined
    : "skipped: the failing disk needs Linux on x86-64 and cc; .ci/run installs it";
export const DISK_SKIPPED = DISK_ABSENT !== undefined && testRequirement() === "none";

/** `struct control` of shim.c, by the offsets of its fields. */
const OPERATIONS = 0;
const STRIKE_AT = 8;
const STRIKES = 16;
const ERROR = 24;
const KINDS = 28;
const LASTING = 32;
const HALF = 36;
const SYNC_US = 40;
const LOCK = 44;
const CONTROL_BYTES = 48;

export interface Strike {
  /** The first operation from now on that fails, from 1. */
  readonly after: number;
  readonly error: "EIO" | "ENOSPC";
  /** Which operations fail: those that change something, or the syncs; both where it is not said. */
  readonly kinds?: "changes" | "syncs";
  /** All that follow fail too. */
  readonly lasting: boolean;
  /** The first write that is struck writes its half and says so, as a disk does that has room for no more. */
  readonly half?: boolean;
}

const KIND_BITS = { changes: 1, syncs: 2 };

export class Disk implements AsyncDisposable {
  private constructor(
    private readonly dir: string,
    private readonly control: number,
  ) {}

  /** `syncUs`: how long a sync takes, so that others write meanwhile. */
  static async make(syncUs = 0): Promise<Disk> {
    const memory = await access(MEMORY).then(
      () => true,
      () => false,
    );
    const dir = await mkdtemp(join(memory ? MEMORY : tmpdir(), "tendon-disk-"));
    await mkdir(join(dir, "data"), { mode: 0o700 });
    await writeFile(join(dir, "control"), new Uint8Array(CONTROL_BYTES));
    await writeFile(join(dir, "journal"), "");
    const words = [
      "-shared",
      "-fPIC",
      "-O2",
      "-Wall",
      "-Wextra",
      "-Werror",
      "-o",
      join(dir, "shim.so"),
      SOURCE,
      "-ldl",
    ];
    const { exitCode, stderr } = Bun.spawnSync(["cc", ...words]);
    if (exitCode !== 0) throw new Error(`the shim cannot be compiled: ${stderr}`);
    const disk = new Disk(dir, openSync(join(dir, "control"), "r+"));
    disk.set(SYNC_US, 4, syncUs);
    return disk;
  }

  /** The folder that is kept: `--data`. */
  get data(): string {
    return join(this.dir, "data");
  }

  /** A folder beside it, which no shim sees. */
  beside(name: string): string {
    return join(this.dir, name);
  }

  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: join(this.dir, "shim.so"),
      TENDON_DISK_ROOT: this.data,
      TENDON_DISK_CONTROL: join(this.dir, "control"),
      TENDON_DISK_JOURNAL: join(this.dir, "journal"),
    };
  }

  /** Operations so far: what was told before had at most this number. */
  get operations(): number {
    return this.get(OPERATIONS, 8);
  }

  /** Operations that failed since the last `strike`. */
  get strikes(): number {
    return this.get(STRIKES, 8);
  }

  strike({ after, error, kinds, lasting, half = false }: Strike): void {
    this.set(STRIKE_AT, 8, 0);
    this.set(STRIKES, 8, 0);
    this.set(ERROR, 4, constants.errno[error]);
    this.set(KINDS, 4, kinds === undefined ? KIND_BITS.changes | KIND_BITS.syncs : KIND_BITS[kinds]);
    this.set(LASTING, 4, Number(lasting));
    this.set(HALF, 4, Number(half));
    this.set(STRIKE_AT, 8, this.operations + after);
  }

  /** Nothing fails any more. */
  mend(): void {
    this.set(STRIKE_AT, 8, 0);
  }

  /** For the next process, when the last one was killed in the middle of an operation. */
  unlock(): void {
    this.set(LOCK, 4, 0);
  }

  journal(): readonly Operation[] {
    return operationsOf(readFileSync(join(this.dir, "journal")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    closeSync(this.control);
    await rm(this.dir, { recursive: true, force: true });
  }

  private get(at: number, bytes: 4 | 8): number {
    const field = Buffer.alloc(8);
    readSync(this.control, field, 0, bytes, at);
    return Number(field.readBigUInt64LE());
  }

  private set(at: number, bytes: 4 | 8, value: number): void {
    const field = Buffer.alloc(8);
    field.writeBigUInt64LE(BigInt(value));
    writeSync(this.control, field, 0, bytes, at);
  }
}
