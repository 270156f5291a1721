/** Clients that fill their runs, and readers of all runs, until the service is gone. */
import { RandomStream } from "../../../src/std/random.ts";
import type { Target } from "../payers.ts";
import { bytesOf, offsetsFor, sha256Of, type Version, versionAt } from "./content.ts";
import { type Model, type ModelRun, type ModelUpload, must, type Pending } from "./model.ts";
import { ask, jsonOf, pathOf, type Reply, sendHalf } from "./requests.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const PATHS = ["a.bin", "episode.jsonl", "videos/top.mp4", "frames/top/0 1.jpg", "d/e/ü"];
/** Completed runs that a client keeps. */
const KEPT_MAX = 2;
const FILES_MIN = 2;

/** Why a client stops: its request has no answer. */
class Gone extends Error {}

export class Client {
  private readonly random: RandomStream;
  private runs = 0;
  private current: ModelRun | undefined;
  private readonly complete: ModelRun[] = [];

  /** `large`: its uploads have several parts. */
  constructor(
    private readonly model: Model,
    private readonly name: string,
    seed: string,
    private readonly large: boolean,
  ) {
    this.random = new RandomStream(`${seed}/${name}`);
  }

  /** Until the service is gone. */
  async work(target: Target): Promise<void> {
    try {
      for (;;) await this.step(target);
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
    }
  }

  private below(count: number): number {
    return this.random.word() % count;
  }

  private async step(target: Target): Promise<void> {
    const run = this.open();
    const files = run.files.size;
    const [unfinished] = [...run.uploads.keys()];
    if (unfinished !== undefined && this.below(4) > 0) return await this.goOn(target, run, unfinished);
    if (unfinished === undefined && files >= FILES_MIN && this.below(4) === 0) return await this.seal(target, run);
    switch (this.below(8)) {
      case 0:
        return files > 0 ? await this.drop(target, run) : undefined;
      case 1:
        return await this.putWrong(target, run);
      case 2:
        return await this.putHalf(target, run);
      case 3:
      case 4:
        return await this.start(target, run);
      default:
        return await this.put(target, run);
    }
  }

  /** The run that it fills: after a kill another one if that was completed or deleted. */
  private open(): ModelRun {
    if (this.current?.manifest !== undefined) this.complete.push(this.current);
    if (!this.current || this.current.manifest !== undefined || this.current.erased) {
      this.runs += 1;
      this.current = this.model.add(this.name, `run-${this.runs}`);
    }
    return this.current;
  }

  /** A path without an upload, which may have a file. */
  private freePath(run: ModelRun): string | undefined {
    const free = PATHS.filter((path) => !run.uploads.has(path));
    return free[this.below(free.length)];
  }

  private version(sizeMax: number): Version {
    const size = this.below(sizeMax);
    return versionAt(this.below(offsetsFor(size)), size);
  }

  private async put(target: Target, run: ModelRun): Promise<void> {
    const path = this.freePath(run);
    if (path === undefined) return;
    const version = this.version(this.below(3) === 0 ? MIB : 40 * KIB);
    const done = () => run.files.set(path, version);
    const request = { method: "PUT", bytes: bytesOf(version) };
    const due = run.files.has(path) ? 200 : 201;
    const reply = await this.send(target, run, `/files/${uri(path)}`, request, due, { kind: "put", path, version });
    must(reply.etag === `"sha256-${version.sha256}"`, `PUT of ${path} answers another ETag than its bytes'`);
    done();
  }

  /** With the digest of other bytes: nothing of it is kept. */
  private async putWrong(target: Target, run: ModelRun): Promise<void> {
    const path = this.freePath(run);
    if (path === undefined) return;
    const bytes = bytesOf(this.version(300 * KIB));
    const request = { method: "PUT", bytes, sha256: sha256Of(new Uint8Array([1, ...bytes.subarray(0, 9)])) };
    const reply = await this.send(target, run, `/files/${uri(path)}`, request, 422);
    must(reply.code === "checksum_mismatch", `a wrong digest is answered ${reply.code}`);
    this.model.refused += 1;
  }

  private async putHalf(target: Target, run: ModelRun): Promise<void> {
    const path = this.freePath(run);
    const { size, ...version } = this.version(600 * KIB);
    if (path === undefined || size < 2) return;
    await sendHalf(target, pathOf(run, `/files/${uri(path)}`), bytesOf({ ...version, size }));
    this.model.refused += 1;
  }

  private async drop(target: Target, run: ModelRun): Promise<void> {
    const paths = [...run.files.keys()];
    const path = paths[this.below(paths.length)] ?? "";
    await this.send(target, run, `/files/${uri(path)}`, { method: "DELETE" }, 204, { kind: "drop", path });
    run.drop(path);
  }

  private async start(target: Target, run: ModelRun): Promise<void> {
    const path = this.freePath(run);
    if (path === undefined) return;
    const size = this.large ? 16 * MIB + 1 + this.below(18 * MIB) : 1 + this.below(2 * MIB);
    const version = versionAt(this.below(offsetsFor(size)), size);
    const json = { size, ...(this.below(2) === 0 ? { sha256: version.sha256 } : {}) };
    const request = { method: "POST", json };
    const pending = { kind: "start", path, version } as const;
    const reply = await this.send(target, run, `/uploads/${uri(path)}`, request, 201, pending);
    const { upload_id: id, part_size: partSize } = jsonOf<{ upload_id: string; part_size: number }>(reply.bytes);
    run.uploads.set(path, { id, version, partSize, parts: new Map() });
    const again = await this.send(target, run, `/uploads/${uri(path)}`, request, 409);
    must(again.code === "upload_in_progress", `an upload of a taken path is answered ${again.code}`);
  }

  /** The parts that have not come, two at once; then the end. */
  private async goOn(target: Target, run: ModelRun, path: string): Promise<void> {
    const upload = run.uploads.get(path);
    if (!upload) return;
    if (this.below(12) === 0) return await this.abort(target, run, path, upload);
    const count = Math.ceil(upload.version.size / upload.partSize);
    const numbers = Array.from({ length: count }, (_, index) => index + 1);
    const absent = numbers.filter((part) => !upload.parts.has(part));
    const again = this.below(8) === 0 ? [1 + this.below(count)] : [];
    const next = [...new Set([...again, ...absent])].slice(0, 2);
    if (next.length === 0) return await this.finish(target, run, path, upload);
    const sent = await Promise.allSettled(next.map((part) => this.sendPart(target, run, path, upload, part)));
    for (const outcome of sent) if (outcome.status === "rejected") throw outcome.reason;
  }

  private async sendPart(target: Target, run: ModelRun, path: string, upload: ModelUpload, part: number) {
    const { id, version, partSize, parts } = upload;
    const bytes = bytesOf(version, (part - 1) * partSize, part * partSize);
    const sha256 = sha256Of(bytes);
    const address = `/uploads/${uri(path)}?upload_id=${id}&part=${part}`;
    if (this.below(8) === 0) {
      const wrong = await this.send(target, run, address, { method: "PUT", bytes, sha256: "0".repeat(64) }, 422);
      must(wrong.code === "checksum_mismatch", `a part with a wrong digest is answered ${wrong.code}`);
      this.model.refused += 1;
    }
    const pending = { kind: "part", path, part, sha256 } as const;
    await this.send(target, run, address, { method: "PUT", bytes }, 200, pending);
    parts.set(part, sha256);
  }

  private async finish(target: Target, run: ModelRun, path: string, { id, version, parts }: ModelUpload) {
    const listed = [...parts].map(([part, sha256]) => ({ part, sha256 }));
    const request = { method: "POST", json: this.below(2) === 0 ? { parts: listed } : {} };
    const address = `/uploads/${uri(path)}?upload_id=${id}`;
    const reply = await this.send(target, run, address, request, 200, { kind: "finish", path });
    expectFile(reply, path, version);
    run.finish(path);
    if (this.model.interrupted.has(id)) this.model.resumed += 1;
  }

  private async abort(target: Target, run: ModelRun, path: string, { id }: ModelUpload): Promise<void> {
    const address = `/uploads/${uri(path)}?upload_id=${id}`;
    await this.send(target, run, address, { method: "DELETE" }, 204, { kind: "abort", path });
    run.abort(path);
  }

  private async seal(target: Target, run: ModelRun): Promise<void> {
    run.turns += 1;
    const request = { method: "POST", json: completion(run) };
    const { bytes } = await this.send(target, run, "/complete", request, 200, { kind: "complete" });
    run.manifest = new TextDecoder().decode(bytes);
    run.turns += 1;
    const late = await this.send(target, run, "/files/late", { method: "PUT", bytes: new Uint8Array(9) }, 409);
    must(late.code === "run_completed", `a write to a completed run is answered ${late.code}`);
    this.model.refused += 1;
    const oldest = this.complete.length >= KEPT_MAX ? this.complete.shift() : undefined;
    if (!oldest || oldest.erased) return;
    oldest.turns += 1;
    await this.send(target, oldest, "", { method: "DELETE" }, 204, { kind: "erase" });
    oldest.clear();
    oldest.turns += 1;
  }

  /** Throws at another answer than is due; one that does not come leaves `pending` behind. */
  private async send(
    target: Target,
    run: ModelRun,
    rest: string,
    request: Parameters<typeof ask>[2],
    due: number,
    pending?: Pending,
  ): Promise<Reply> {
    const reply = await ask(target, pathOf(run, rest), request);
    if (reply.status === 0) {
      if (pending) run.pending.push(pending);
      throw new Gone();
    }
    const told = `${request?.method} ${pathOf(run, rest)}`;
    must(reply.status === due, `${told} is answered ${reply.status} ${reply.code}, due was ${due}`);
    this.model.answered += 1;
    return reply;
  }
}

export function completion({ files }: ModelRun): object {
  return {
    files: [...files].map(([path, { size, sha256 }]) => ({ path, size, sha256 })),
    metadata: { task: "kill", files: files.size },
  };
}

export function expectFile({ bytes }: Reply, path: string, version: Version): void {
  const told = jsonOf<{ path: string; size: number; sha256: string }>(bytes);
  const same = told.path === path && told.size === version.size && told.sha256 === version.sha256;
  must(same, `an upload of ${path} ended as another file than was sent`);
}

export function uri(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}

/** Looks at runs of all clients: completed ones never change, unfinished ones cannot be read. */
export async function readRuns(model: Model, target: Target, seed: string): Promise<void> {
  const random = new RandomStream(seed);
  for (;;) {
    const { runs } = model;
    const run = runs[random.word() % Math.max(1, runs.length)];
    if (!run) {
      await Bun.sleep(5);
      continue;
    }
    const { turns, manifest } = run;
    const paths = [...run.files.keys()];
    const path = paths[random.word() % Math.max(1, paths.length)];
    const version = path === undefined ? undefined : run.files.get(path);
    const ofFile = path !== undefined && version !== undefined && random.word() % 4 > 0;
    const reply = await ask(target, pathOf(run, ofFile ? `/files/${uri(path)}` : ""));
    if (reply.status === 0) return;
    if (ofFile && reply.status === 200) {
      // Whatever happened meanwhile: never a part of a file, never two mixed.
      must(reply.etag === `"sha256-${sha256Of(reply.bytes)}"`, `${run.run}/${path}: other bytes than its ETag says`);
      model.read += 1;
    }
    const moved = run.turns !== turns || turns % 2 === 1;
    if (moved) continue;
    if (manifest === undefined) {
      must(reply.code === "run_not_found", `an unfinished run answers ${reply.status} ${reply.code} to a reader`);
    } else if (ofFile) {
      must(reply.status === 200, `${run.run}/${path} of a completed run is answered ${reply.status} ${reply.code}`);
      must(sha256Of(reply.bytes) === version.sha256, `${run.run}/${path} has changed for a reader`);
    } else {
      must(new TextDecoder().decode(reply.bytes) === manifest, `the manifest of ${run.run} has changed`);
    }
  }
}
