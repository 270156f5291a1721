/** A folder for a run, a bad link to a service with run storage, and pushes and pulls over it. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pace } from "../../src/client/runs/patience.ts";
import { type Pull, type PullReport, pull } from "../../src/client/runs/pull.ts";
import { type Push, type PushReport, push } from "../../src/client/runs/push.ts";
import type { Watcher } from "../../src/client/runs/watcher.ts";
import { RunsClient } from "../../src/client/runs.ts";
import { Problem } from "../../src/std/problem.ts";
import { RunsStage } from "../runs/stage.ts";
import { BadLink } from "./bad-link.ts";

/** A service with run storage, and a key for it. */
export interface RunService extends AsyncDisposable {
  readonly url: string;
  readonly key: string;
}

/** A real one, in this process. */
export async function runService(): Promise<RunService> {
  const stage = await RunsStage.start();
  const { url, key } = await stage.person();
  return { url, key, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
}

export const PACE: Pace = { firstMs: 4, longestMs: 16, failuresMax: 5 };

/** Sums up what a watcher hears. */
export class Heard implements Watcher {
  bytes = 0;
  files = 0;
  readonly waits: { readonly why: string; readonly ms: number }[] = [];
  readonly skipped: string[] = [];
  onMoved: (bytes: number) => void = () => {};

  begun(all: { skipped: readonly string[] }): void {
    this.bytes = 0;
    this.files = 0;
    this.skipped.push(...all.skipped);
  }
  there(bytes: number): void {
    this.bytes += bytes;
  }
  moved(bytes: number): void {
    this.bytes += bytes;
    this.onMoved(this.bytes);
  }
  fileDone(): void {
    this.files += 1;
  }
  waiting(why: Problem, ms: number): void {
    this.waits.push({ why: why.message, ms });
  }
}

export class RunsPlace implements AsyncDisposable {
  heard = new Heard();
  readonly run = { robot: "lab-7", run: `fold-${randomBytes(6).toString("hex")}` };

  private constructor(
    readonly dir: string,
    readonly service: RunService,
    readonly link: BadLink,
  ) {}

  static async at(service: RunService): Promise<RunsPlace> {
    const dir = await mkdtemp(join(tmpdir(), "tendon-runs-"));
    return new RunsPlace(dir, service, await BadLink.to(service.url));
  }

  get folder(): string {
    return join(this.dir, "episode");
  }

  /** Past the bad link. */
  get client(): RunsClient {
    return new RunsClient({ url: this.service.url, apiKey: this.service.key });
  }

  async write(path: string, content: string | number): Promise<Uint8Array> {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : randomBytes(content);
    await Bun.write(join(this.folder, path), bytes);
    return bytes;
  }

  async push(changes: Partial<Push> = {}, signal = new AbortController().signal): Promise<PushReport | Problem> {
    this.heard = Object.assign(new Heard(), { onMoved: this.heard.onMoved });
    const { folder, run } = this;
    const wanted = { folder, run, parallel: 4, recordsDir: join(this.dir, "records"), ...changes };
    return await push({ url: this.link.url, apiKey: this.service.key }, wanted, this.heard, { pace: PACE, signal });
  }

  async pull(to = "copy", signal = new AbortController().signal): Promise<PullReport | Problem> {
    this.heard = Object.assign(new Heard(), { onMoved: this.heard.onMoved });
    const service = { url: this.link.url, apiKey: this.service.key };
    return await pull(service, this.wanted(to), this.heard, { pace: PACE, signal });
  }

  wanted(to: string): Pull {
    return { folder: join(this.dir, to), run: this.run, parallel: 4 };
  }

  /** Paths and contents of a folder here. */
  async contents(name: string): Promise<Map<string, Buffer>> {
    const root = join(this.dir, name);
    const found = new Map<string, Buffer>();
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath, entry.name);
      found.set(file.slice(root.length + 1), Buffer.from(await Bun.file(file).bytes()));
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.link[Symbol.asyncDispose]();
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** The value of a call that must have worked. */
export function good<T>(outcome: T | Problem): T {
  if (outcome instanceof Problem) throw new Error(`unexpected problem: ${outcome.message}`);
  return outcome;
}

/** The problem of a call that must have failed. */
export function bad(outcome: unknown): Problem {
  if (outcome instanceof Problem) return outcome;
  throw new Error("expected a problem");
}
