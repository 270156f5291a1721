/** What clients of run storage were told, and so what must be there after the service was killed. */
import type { Version } from "./content.ts";
import type { RunName } from "./requests.ts";

export interface ModelUpload {
  readonly id: string;
  readonly version: Version;
  readonly partSize: number;
  /** SHA-256 by number, of the parts that were acknowledged. */
  readonly parts: Map<number, string>;
}

/** A request without an answer: it was done or not. */
export type Pending =
  | { readonly kind: "put"; readonly path: string; readonly version: Version }
  | { readonly kind: "drop"; readonly path: string }
  | { readonly kind: "start"; readonly path: string; readonly version: Version }
  | { readonly kind: "part"; readonly path: string; readonly part: number; readonly sha256: string }
  | { readonly kind: "finish"; readonly path: string }
  | { readonly kind: "abort"; readonly path: string }
  | { readonly kind: "complete" }
  | { readonly kind: "erase" };

export class ModelRun implements RunName {
  readonly files = new Map<string, Version>();
  readonly uploads = new Map<string, ModelUpload>();
  /** Uploads that were finished, by their ids. */
  readonly finished = new Map<string, { readonly path: string; readonly version: Version }>();
  pending: Pending[] = [];
  /** The text that the client read, once the run is complete. */
  manifest: string | undefined;
  erased = false;
  /** Counts requests that seal or erase it: what a reader finds across one of them may be either. */
  turns = 0;

  constructor(
    readonly robot: string,
    readonly run: string,
  ) {}

  clear(): void {
    this.files.clear();
    this.uploads.clear();
    this.finished.clear();
    this.manifest = undefined;
    this.erased = true;
  }

  drop(path: string): void {
    this.files.delete(path);
    this.forgetFinished(path);
    this.forgetEmpty();
  }

  abort(path: string): void {
    this.uploads.delete(path);
    this.forgetEmpty();
  }

  /** The answer of a finished upload goes with its file, and with the next upload of its path. */
  private forgetFinished(path: string): void {
    for (const [id, of] of this.finished) {
      if (of.path === path) this.finished.delete(id);
    }
  }

  /** Without files and uploads there is no run, and no answers of its uploads. */
  private forgetEmpty(): void {
    if (this.files.size + this.uploads.size === 0) this.finished.clear();
  }

  finish(path: string): void {
    const upload = this.uploads.get(path);
    if (!upload) throw new Error(`no upload at ${path}`);
    this.uploads.delete(path);
    this.files.set(path, upload.version);
    this.forgetFinished(path);
    this.finished.set(upload.id, { path, version: upload.version });
  }
}

export class Model {
  readonly runs: ModelRun[] = [];
  /** Requests that were answered. */
  answered = 0;
  /** Files and ranges that readers compared. */
  read = 0;
  /** The ids of uploads that had parts when the service was killed. */
  readonly interrupted = new Set<string>();
  /** The number of those that went on and were finished. */
  resumed = 0;
  /** Requests that were refused, or broke off. */
  refused = 0;

  add(robot: string, run: string): ModelRun {
    const made = new ModelRun(robot, run);
    this.runs.push(made);
    return made;
  }

  get there(): readonly ModelRun[] {
    return this.runs.filter(({ erased }) => !erased);
  }
}

export function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
