/** Run storage from behind: the rows of an account and the bytes on the disk. */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { blobPath } from "../../../src/runs/blob/folder.ts";
import type { Books } from "../books.ts";
import { must } from "./model.ts";

interface FoundFile {
  readonly blobId: string;
  readonly size: number;
  readonly sha256: string;
}

interface FoundUpload {
  readonly id: string;
  readonly size: number;
  readonly parts: ReadonlyMap<number, { readonly sha256: string; readonly tag: string }>;
}

export interface FoundRun {
  readonly files: Map<string, FoundFile>;
  /** Unfinished ones. */
  readonly uploads: Map<string, FoundUpload>;
  readonly manifest: string | undefined;
}

interface Row {
  readonly [column: string]: string | number | null | Uint8Array;
}

/** The runs by `robot/run`. */
export async function foundRuns(books: Books, accountId: string): Promise<Map<string, FoundRun>> {
  const of = `account_id = '${accountId}'`;
  const rows = await books.rows<Row>(`SELECT id, robot, run, manifest FROM robot_runs WHERE ${of}`);
  const runs = new Map<unknown, FoundRun>();
  const found = new Map<string, FoundRun>();
  for (const { id, robot, run, manifest } of rows) {
    const one = { files: new Map(), uploads: new Map(), manifest: manifest === null ? undefined : String(manifest) };
    runs.set(id, one);
    found.set(`${robot}/${run}`, one);
  }
  for (const { run_id, path, blob_id, size, sha256 } of await books.rows<Row>(
    "SELECT run_id, path, blob_id, size, sha256 FROM run_files",
  )) {
    const file = { blobId: String(blob_id), size: Number(size), sha256: hex(sha256) };
    const run = runs.get(run_id);
    must(run !== undefined, `the file ${path} is of a run that is not there`);
    run.files.set(String(path), file);
  }
  const parts = await books.rows<Row>("SELECT upload_id, part, tag, sha256 FROM run_parts");
  for (const { id, run_id, path, size, state } of await books.rows<Row>(
    "SELECT id, run_id, path, size, state FROM run_uploads WHERE state <> 'done'",
  )) {
    must(state === "open", `the upload of ${path} is ${state}, and nobody puts it together`);
    const own = parts.filter(({ upload_id }) => upload_id === id);
    const byNumber = own.map(
      ({ part, tag, sha256 }) => [Number(part), { tag: String(tag), sha256: hex(sha256) }] as const,
    );
    runs.get(run_id)?.uploads.set(String(path), { id: String(id), size: Number(size), parts: new Map(byNumber) });
  }
  return found;
}

function hex(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : "";
}

/** Every file and part that has a row has its bytes; every byte has a row, if only one that says that it is to be removed. */
export async function expectBytes(books: Books, runs: Iterable<FoundRun>, removed = false): Promise<void> {
  const { dataDir } = books;
  must((await filesIn(join(dataDir, "staging"))).length === 0, "bytes that came before the kill are still staged");
  const files = new Set<unknown>();
  const assemblies = new Set<unknown>();
  for (const run of runs) {
    for (const [path, { blobId, size, sha256 }] of run.files) {
      files.add(blobId);
      await expectFile(blobPath(dataDir, blobId), size, sha256, path);
    }
  }
  for (const { id, blob_id } of await books.rows<Row>("SELECT id, blob_id FROM run_uploads WHERE state <> 'done'")) {
    assemblies.add(blob_id);
    for (const { part, tag, size, sha256 } of await books.rows<Row>(
      `SELECT part, tag, size, sha256 FROM run_parts WHERE upload_id = '${id}'`,
    )) {
      await expectFile(join(dataDir, "parts", String(blob_id), String(tag)), Number(size), hex(sha256), `part ${part}`);
    }
  }
  const going = await books.rows<Row>("SELECT id, state FROM run_blobs");
  must(
    going.every(({ state }) => state === "gone"),
    "a file is still on its way although nobody sends it",
  );
  const gone = new Set<unknown>(going.map(({ id }) => id));
  if (removed) must(gone.size === 0, `${gone.size} deleted blobs are not swept`);
  // The name of the store, which stands beside its blobs.
  const blobs = (await filesIn(join(dataDir, "blobs"))).filter((name) => !name.startsWith("store-id"));
  for (const blob of blobs) {
    must(files.has(blob) || assemblies.has(blob) || gone.has(blob), `${blob} lies on the disk, and no row names it`);
  }
  for (const id of await readdir(join(dataDir, "parts"))) {
    must(assemblies.has(id) || gone.has(`parts-${id}`), `parts of ${id} lie on the disk, and no row names them`);
  }
}

async function expectFile(path: string, size: number, sha256: string, name: string): Promise<void> {
  const file = Bun.file(path);
  must(await file.exists(), `the bytes of ${name} are not there`);
  const hash = createHash("sha256");
  for await (const piece of file.stream()) hash.update(piece);
  must(file.size === size && hash.digest("hex") === sha256, `the bytes of ${name} are not those of its row`);
}

/** Their names, however deep. */
async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile()).map(({ name }) => name);
}
