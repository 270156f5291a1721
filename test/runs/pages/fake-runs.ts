/** Runs as folders of files, for the pages: `accounts / robot / run` in memory, files on disk. It notes what was read. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Source } from "../../../src/http/download.ts";
import { RUNS } from "../../../src/runs/errors.ts";
import type { AccountRun, RunsForPages } from "../../../src/runs/pages/runs.ts";
import { Failure } from "../../../src/std/failure.ts";

const TYPES: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  jpg: "image/jpeg",
  html: "text/html",
  json: "application/json",
};

interface StoredRun extends AccountRun {
  readonly folder: string;
  readonly completedAt: number;
}

export class FakeRuns implements RunsForPages {
  readonly runs: StoredRun[] = [];
  /** Path, and the range asked for. */
  readonly reads: { readonly path: string; readonly range: string | null; readonly bytes: number }[] = [];
  down = false;

  add(run: AccountRun, folder: string, completedAt: number): void {
    this.runs.push({ ...run, folder, completedAt });
  }

  async list({ accountId, robot, limit, after }: Parameters<RunsForPages["list"]>[0]) {
    if (this.down) return DOWN;
    if (robot !== undefined && !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(robot))
      return new Failure(RUNS.invalid_request, "robot is no name of a robot");
    const all = this.runs
      .filter((run) => run.accountId === accountId && (robot === undefined || run.robot === robot))
      .toSorted((a, b) => b.completedAt - a.completedAt);
    const begin = after === undefined ? 0 : Number(after);
    const page = await Promise.all(
      all.slice(begin, begin + limit).map(async ({ folder, ...run }) => {
        const files = await filesOf(folder);
        return { ...run, size: files.reduce((sum, { size }) => sum + size, 0), files: files.length };
      }),
    );
    return { data: page, next: begin + limit < all.length ? String(begin + limit) : undefined };
  }

  async manifest(name: AccountRun): Promise<string | Failure> {
    if (this.down) return DOWN;
    const found = this.#find(name);
    if (found === undefined) return GONE;
    const { robot, run, completedAt, folder } = found;
    const files = await filesOf(folder);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    return JSON.stringify({ object: "robot.run", robot, run, completed_at: completedAt, size, files, metadata: {} });
  }

  async remove(name: AccountRun): Promise<undefined | Failure> {
    const found = this.#find(name);
    if (found === undefined) return GONE;
    this.runs.splice(this.runs.indexOf(found), 1);
    return undefined;
  }

  async usage(accountId: string) {
    if (this.down) return DOWN;
    const own = this.runs.filter((run) => run.accountId === accountId);
    const sizes = await Promise.all(own.map(({ folder }) => filesOf(folder)));
    const storedBytes = sizes.flat().reduce((sum, { size }) => sum + size, 0);
    return { storedBytes, reservedBytes: 3 * 2 ** 20, quotaBytes: 100 * 2 ** 30 };
  }

  async file(name: AccountRun, path: string, request: Request) {
    const found = this.#find(name);
    const known = found && (await filesOf(found.folder)).find((file) => file.path === path);
    if (found === undefined || known === undefined) return new Failure(RUNS.file_not_found, "there is no such file");
    const file = Bun.file(join(found.folder, path));
    const { size } = file;
    const range = request.headers.get("range");
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
    const start = Number(from ?? 0);
    const end = to === undefined || to === "" ? size : Math.min(Number(to) + 1, size);
    this.reads.push({ path, range, bytes: end - start });
    const headers = { "content-type": known.content_type, "accept-ranges": "bytes", etag: `"sha256-${known.sha256}"` };
    const body = streamed(file.slice(start, end));
    if (from === undefined) return { status: 200, body, headers };
    const part = { ...headers, "content-range": `bytes ${start}-${end - 1}/${size}` };
    return { status: 206, body, headers: part };
  }

  #find({ accountId, robot, run }: AccountRun): StoredRun | undefined {
    return this.runs.find((one) => one.accountId === accountId && one.robot === robot && one.run === run);
  }
}

/** Browsers ask for a video from some byte on, and take what they need of it. */
function streamed(file: Blob): Source {
  let at = 0;
  return {
    pull: async () => {
      const piece = await file.slice(at, at + PIECE_BYTES).bytes();
      at += piece.length;
      return piece.length === 0 ? undefined : piece;
    },
    close: async () => {},
  };
}

const PIECE_BYTES = 64 * 1024;

const GONE = new Failure(RUNS.run_not_found, "the account has no completed run of this name");
const DOWN = new Failure(RUNS.storage_unavailable, "the storage is down", { retryAfterSeconds: 5 });

async function filesOf(folder: string) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  return paths.sort().map((path) => ({
    path,
    size: Bun.file(join(folder, path)).size,
    sha256: "0".repeat(64),
    content_type: TYPES[path.split(".").at(-1) ?? ""] ?? "application/octet-stream",
  }));
}
