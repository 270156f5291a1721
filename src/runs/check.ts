/**
 * Compares the records of all runs with the stored bytes, in both directions, and changes nothing. Services may run meanwhile, so each
 * fault is checked again before it is reported. The records of all files are in memory, some 500 bytes each.
 */
import { LIMITS } from "../limits.ts";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { StoreDown } from "../store/store.ts";
import { type Backend, type BlobFacts, digestOf } from "./blob/backend.ts";
import type { WrongTotal } from "./store/reads.ts";
import type { RecordedFile } from "./store/records.ts";
import type { RunStore } from "./store/runs.ts";

interface Deps {
  readonly store: Pick<RunStore, "storeIdKnown" | "runTotalsWrong" | "filesAfter" | "blobsKnown">;
  /** The comparison rejects when its functions do. */
  readonly blobs: Pick<Backend, "marker" | "list" | "read">;
  /** Unix seconds. */
  readonly now: number;
  readonly deep: boolean;
}

export interface WrongFile {
  readonly file: RecordedFile;
  /** `record` means that the file belongs to no run. */
  readonly why: "missing" | "size" | "digest" | "record";
}

export interface Checked {
  readonly files: number;
  readonly bytes: number;
  readonly blobs: number;
  /** Blobs without a record that may yet get one. They are left out. */
  readonly young: number;
  readonly read: number;
  readonly totals: readonly WrongTotal[];
  readonly wrong: readonly WrongFile[];
  /** Blobs without a record that are older than the grace span. The service removes them by itself. */
  readonly unnamed: readonly BlobFacts[];
}

const READERS = 4;

/** The result is a problem if the bytes belong to other records; nothing is compared then. */
export async function checkRuns(deps: Deps): Promise<Checked | StoreDown | Problem> {
  try {
    return (await foreignBytes(deps)) ?? (await compared(deps));
  } catch (error) {
    if (error instanceof StoreDown) return error;
    throw error;
  }
}

/** What the store answers; its failure is thrown. */
async function answered<T>(asked: Promise<T | StoreDown>): Promise<T> {
  const answer = await asked;
  if (answer instanceof StoreDown) throw answer;
  return answer;
}

async function compared(deps: Deps): Promise<Checked> {
  const totals = await answered(deps.store.runTotalsWrong());
  // Files come first: a blob precedes its record, so a later list must have the blob of each.
  const recorded = await recordedFiles(deps);
  const files = [...recorded.values()];
  const found = await compareLists(deps, recorded);
  const lost = new Set(found.suspects.map(({ file }) => file.blobId));
  const read = deps.deep ? files.filter(({ blobId }) => !lost.has(blobId)) : [];
  const orphans = files.filter(({ robot }) => robot === undefined).map((file): WrongFile => ({ file, why: "record" }));
  const wrong = await stillRecorded(deps, [...orphans, ...found.suspects, ...(await readAll(deps, read))]);
  const unnamed = await stillUnnamed(deps, found.unnamed);
  return {
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
    blobs: found.blobs,
    young: found.young,
    read: read.length,
    totals,
    wrong,
    unnamed,
  };
}

async function foreignBytes({ store, blobs }: Deps): Promise<Problem | undefined> {
  const records = await answered(store.storeIdKnown());
  // The generation may be that of a newer copy: the comparison shows what adopting would lose.
  const [bytes = ""] = (await blobs.marker()).split(" ");
  if (bytes === "" || bytes === records) return undefined;
  return new Problem(
    `the stored bytes belong to the database ${printable(bytes)}, and this one is ${records ?? "none that stored any"}: name the database and the folder or bucket that belong together`,
  );
}

async function recordedFiles({ store }: Deps): Promise<Map<string, RecordedFile>> {
  const all = new Map<string, RecordedFile>();
  for (let after = ""; ; ) {
    const page = await answered(store.filesAfter({ after }));
    for (const file of page) all.set(file.blobId, file);
    const last = page.at(-1);
    if (!last) return all;
    after = last.blobId;
  }
}

async function* pages({ list }: Pick<Backend, "list">): AsyncGenerator<readonly BlobFacts[]> {
  let after: string | undefined;
  do {
    const { blobs, next } = await list(after);
    yield blobs;
    after = next;
  } while (after !== undefined);
}

/** Compares whole blobs with the files, and blobs and assemblies with all rows that name them. */
async function compareLists({ store, blobs, now }: Deps, recorded: ReadonlyMap<string, RecordedFile>) {
  const before = now - LIMITS.runLeftSeconds;
  // A page may come twice if another node makes a folder.
  const whole = new Map<string, number>();
  const unnamed = new Map<string, BlobFacts>();
  for await (const page of pages(blobs)) {
    for (const { id, size, begun } of page) if (!begun) whole.set(id, size);
    const ids = page.map(({ id }) => id);
    const known = new Set(ids.length === 0 ? [] : await answered(store.blobsKnown({ ids })));
    for (const facts of page) if (!known.has(facts.id)) unnamed.set(facts.id, facts);
  }
  const suspects = [...recorded].flatMap(([id, file]): WrongFile[] => {
    const size = whole.get(id);
    if (size === file.size) return [];
    return [{ file, why: size === undefined ? "missing" : "size" }];
  });
  const old = [...unnamed.values()].filter(({ at }) => at < before);
  return { blobs: whole.size, young: unnamed.size - old.length, suspects, unnamed: old };
}

async function readAll(deps: Deps, files: readonly RecordedFile[]): Promise<WrongFile[]> {
  const wrong: WrongFile[] = [];
  const rest = files.values();
  const reader = async () => {
    for (const file of rest) {
      const bytes = await deps.blobs.read(file.blobId, 0, file.size);
      if (!bytes) wrong.push({ file, why: "missing" });
      else if (Buffer.compare(await digestOf(bytes), file.sha256) !== 0) wrong.push({ file, why: "digest" });
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return wrong;
}

/** The suspects without the files that were deleted or replaced meanwhile. */
async function stillRecorded({ store }: Deps, suspects: readonly WrongFile[]): Promise<readonly WrongFile[]> {
  const wrong: WrongFile[] = [];
  for (const suspect of suspects) {
    const { blobId } = suspect.file;
    // In any order of a database the beginning of an id comes before it, with few ids between.
    const page = await answered(store.filesAfter({ after: blobId.slice(0, -1) }));
    if (page.some((file) => file.blobId === blobId)) wrong.push(suspect);
  }
  return wrong;
}

/** The suspects without the blobs that were removed between the list and the query for their rows. */
async function stillUnnamed({ blobs, store }: Deps, suspects: readonly BlobFacts[]): Promise<readonly BlobFacts[]> {
  if (suspects.length === 0) return [];
  const there = new Set<string>();
  for await (const page of pages(blobs)) for (const { id } of page) there.add(id);
  const still = suspects.filter(({ id }) => there.has(id));
  const named = await answered(store.blobsKnown({ ids: still.map(({ id }) => id) }));
  return still.filter(({ id }) => !named.includes(id));
}
