/** Puts a blob of a size and reads it, and prints by how many bytes the process grew meanwhile. Arguments: options as JSON, folder, bytes. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Backend, Staged } from "../../../src/runs/blob/backend.ts";
import { folderBackend } from "../../../src/runs/blob/folder.ts";
import type { BlobOptions } from "../../../src/runs/blob/loop.ts";
import { s3Backend } from "../../../src/runs/blob/s3.ts";

const [, , said = "", dir = "", bytes = ""] = process.argv;
const options: BlobOptions = JSON.parse(said);
const backend: Backend = options.kind === "folder" ? folderBackend(options.path, () => "1") : s3Backend(options);
await backend.check();

/** Written in pieces, because a whole one in memory would hide what the backend takes. */
async function staged(name: string, size: number): Promise<Staged> {
  const path = join(dir, name);
  const file = Bun.file(path).writer();
  const hash = createHash("sha256");
  for (let at = 0; at < size; at += 65_536) {
    const piece = crypto.getRandomValues(new Uint8Array(Math.min(65_536, size - at)));
    hash.update(piece);
    file.write(piece);
    await file.flush();
  }
  await file.end();
  return { path, size, sha256: new Uint8Array(hash.digest()) };
}

async function roundTrip(source: Staged, id: string): Promise<void> {
  await backend.put(source, id);
  const hash = createHash("sha256");
  for await (const piece of (await backend.read(id, 0, source.size)) ?? []) hash.update(piece);
  if (Buffer.compare(hash.digest(), source.sha256) !== 0) throw new Error("other bytes came back");
}

const source = await staged("large", Number(bytes));
await roundTrip(await staged("small", 1_000_000), "blob_warmup");
Bun.gc(true);
const before = process.memoryUsage().rss;
let peak = before;
const timer = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().rss);
}, 2);
await roundTrip(source, "blob_large");
clearInterval(timer);
process.stdout.write(String(peak - before));
