/**
 * What a disk holds after the power was lost: what was synced, and of the rest any part. Bytes of a file are there once a sync of the
 * file that began after they were written has ended; a name is there once its folder was synced likewise. Until then each block of each
 * write is there or not, in any order, and of the changes of names those up to some moment.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { RandomStream } from "../../../src/std/random.ts";
import type { Operation } from "./journal.ts";

/**
 * - `kept`: all is there, as after kill -9.
 * - `synced`: only what must be there.
 * - `torn`: all is there, but half of the last write.
 * - `mixed`: what is not synced is there in parts, by chance.
 */
export const LOSSES = ["kept", "synced", "torn", "mixed"] as const;
export type Loss = (typeof LOSSES)[number];

/** A disk writes no less than this at once. */
const BLOCK_BYTES = 512;

interface Change {
  readonly number: number;
  /** The bytes of a write; undefined: the file gets the length `at`. */
  readonly data?: Uint8Array;
  readonly at: number;
}

interface File {
  durable: Uint8Array;
  pending: Change[];
}

interface Naming extends Operation {
  durable: boolean;
}

/** The state after some of the operations; `through` adds more. */
export class Image {
  private readonly files = new Map<number, File>();
  private readonly namings: Naming[] = [];
  private at = 0;

  constructor(private readonly operations: readonly Operation[]) {}

  /** All operations up to this number have happened. */
  through(number: number): void {
    for (; (this.operations[this.at]?.number ?? Number.POSITIVE_INFINITY) <= number; this.at += 1) {
      const operation = this.operations[this.at];
      if (operation) this.take(operation);
    }
  }

  /** Writes what is left into an empty folder. */
  async writeTo(folder: string, loss: Loss, random: RandomStream): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const last = this.operations[this.at - 1]?.number ?? 0;
    const unnamed = this.namings.filter(({ durable }) => !durable);
    const until = loss === "synced" ? 0 : loss === "mixed" ? random.word() % (unnamed.length + 1) : unnamed.length;
    const lost = new Set(unnamed.slice(until));
    const names = namesOf(this.namings.filter((naming) => !lost.has(naming)));
    const folders = [...names].filter(([, inode]) => inode === undefined).map(([path]) => path);
    for (const path of folders.sort()) await mkdir(join(folder, path), { recursive: true, mode: 0o700 });
    for (const [path, inode] of names) {
      // Its folder may be lost.
      if (inode === undefined || (dirname(path) !== "." && !folders.includes(dirname(path)))) continue;
      const bytes = bytesOf(this.files.get(inode), (change) => kept(change, loss, last, random));
      await writeFile(join(folder, path), bytes, { mode: 0o600 });
    }
  }

  private take(operation: Operation): void {
    const { number, kind, inode, at, data } = operation;
    if (kind === "write") this.file(inode).pending.push({ number, data, at });
    else if (kind === "truncate") this.file(inode).pending.push({ number, at });
    else if (kind === "sync") this.sync(operation);
    else if (kind !== "sync failed") {
      // The number of a file that is gone may be given to a new one.
      if (kind === "create") this.files.set(inode, { durable: new Uint8Array(), pending: [] });
      this.namings.push({ ...operation, durable: false });
    }
  }

  private sync({ inode, path, at: begun }: Operation): void {
    const file = this.files.get(inode);
    if (file) {
      const settled = file.pending.filter(({ number }) => number <= begun);
      file.durable = bytesOf({ durable: file.durable, pending: settled }, (change) => [change]);
      file.pending = file.pending.filter(({ number }) => number > begun);
    }
    for (const naming of this.namings) {
      const named = naming.kind === "rename" ? textOf(naming.data) : naming.path;
      if (naming.number <= begun && dirname(named) === path) naming.durable = true;
    }
  }

  private file(inode: number): File {
    const known = this.files.get(inode) ?? { durable: new Uint8Array(), pending: [] };
    this.files.set(inode, known);
    return known;
  }
}

function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

/** Inodes by path; undefined: a folder. */
function namesOf(namings: readonly Naming[]): Map<string, number | undefined> {
  const names = new Map<string, number | undefined>();
  for (const { kind, path, inode, data } of namings) {
    if (kind === "mkdir") names.set(path, undefined);
    else if (kind === "create") names.set(path, inode);
    else {
      if (kind === "rename") names.set(textOf(data), inode);
      names.delete(path);
    }
  }
  return names;
}

/** The parts of a change that are left. */
function kept(change: Change, loss: Loss, last: number, random: RandomStream): readonly Change[] {
  const { number, data, at } = change;
  if (loss === "synced") return [];
  if (loss === "torn" && number === last && data) return [{ number, at, data: data.subarray(0, data.length >> 1) }];
  if (loss !== "mixed") return [change];
  if (!data) return random.word() % 2 === 0 ? [change] : [];
  const parts: Change[] = [];
  for (let from = 0; from < data.length; ) {
    const to = Math.min(data.length, from + BLOCK_BYTES - ((at + from) % BLOCK_BYTES));
    if (random.word() % 2 === 0) parts.push({ number, at: at + from, data: data.subarray(from, to) });
    from = to;
  }
  return parts;
}

function bytesOf(file: File | undefined, parts: (change: Change) => readonly Change[]): Uint8Array {
  let bytes = file?.durable ?? new Uint8Array();
  for (const { data, at } of (file?.pending ?? []).flatMap(parts)) {
    const length = data ? Math.max(bytes.length, at + data.length) : at;
    const next = new Uint8Array(length);
    next.set(bytes.subarray(0, length));
    if (data) next.set(data, at);
    bytes = next;
  }
  return bytes;
}
