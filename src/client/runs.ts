/**
 * Run storage as a client has it: one method per route (contract section 7). Each waits for what passes by itself, such as a broken
 * connection, and repeats the request; each can be repeated safely.
 */
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Clock, systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";
import type { RunName } from "../std/run-names.ts";
import { ErrorReply, NoAnswer, type Service } from "./http.ts";
import { download, exchange, type RunRequest } from "./runs/exchange.ts";
import { fileRoute, RUNS_ROUTE, runRoute } from "./runs/names.ts";
import { PACE, type Pace, type Patience, patiently, pauseMs } from "./runs/patience.ts";
import { contentDigest, type Piece } from "./runs/piece.ts";
import {
  Manifest,
  OpenUpload,
  OpenUploads,
  RunList,
  RunUsage,
  StartedUpload,
  StoredFile,
  UploadedPart,
} from "./runs/records.ts";
import { pause } from "./waiting.ts";

export interface RunsOptions {
  /** Ends every call; what a call returns then means nothing. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly pace?: Pace;
  /** Hears of each pause before a repeat. */
  readonly waiting?: (why: Problem, ms: number) => void;
}

/** A piece of a file on its way, and an ear for the bytes that move; a negative number takes back those of a failed attempt. */
export interface Cargo {
  readonly piece: Piece;
  readonly sha256: string;
  readonly moved: (bytes: number) => void;
}

/** How often bytes are sent again that arrived damaged. */
const DAMAGED_MAX = 4;
/** How long the client waits for a file that is being put together. An object store takes minutes for gigabytes. */
const FINISH_MS = 10 * 60_000;
/** The pauses between two looks at it. */
const FINISH_PACE = { firstMs: 1_000, longestMs: 15_000 };
/** Looks at a run that another upload keeps open. */
const COMPLETE_LOOKS_MAX = 6;

type More = Pick<Patience, "also" | "progressed">;

export class RunsClient {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  private readonly patience: Patience;
  /** The service has answered once, so it is worth waiting for. */
  private met = false;

  constructor(
    readonly service: Service,
    options: RunsOptions = {},
  ) {
    const { signal = new AbortController().signal, clock = systemClock, pace = PACE, waiting = () => {} } = options;
    this.clock = clock;
    this.signal = signal;
    this.patience = { clock, signal, pace, waiting, unknownService: () => !this.met };
  }

  list(page: { robot?: string | undefined; limit?: number | undefined; after?: string | undefined } = {}) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(page)) if (value !== undefined) query.set(name, String(value));
    const route = query.size === 0 ? RUNS_ROUTE : `${RUNS_ROUTE}?${query}`;
    return this.ask({ method: "GET", route }, RunList);
  }

  usage() {
    return this.ask({ method: "GET", route: `${RUNS_ROUTE}/usage` }, RunUsage);
  }

  /** The manifest of a completed run. */
  manifest(run: RunName) {
    return this.ask({ method: "GET", route: runRoute(run) }, Manifest);
  }

  /** Deletes every file of the run, complete or not. A delete whose answer was lost finds nothing when it is repeated. */
  async remove(run: RunName): Promise<Problem | undefined> {
    let broken = false;
    const attempt = async () => {
      const outcome = await this.noted(exchange(this.service, { method: "DELETE", route: runRoute(run) }, this));
      if (broken && isCode(outcome, "run_not_found")) return { body: undefined };
      broken ||= outcome instanceof NoAnswer;
      return outcome;
    };
    const outcome = await patiently(attempt, this.patience);
    return outcome instanceof Problem ? outcome : undefined;
  }

  complete(run: RunName, list: { readonly files: readonly StoredFile[]; readonly metadata: object | undefined }) {
    const body = JSON.stringify(list);
    const also = { upload_in_progress: COMPLETE_LOOKS_MAX };
    return this.ask({ method: "POST", route: `${runRoute(run)}/complete`, body }, Manifest, { also });
  }

  putFile(run: RunName, path: string, cargo: Cargo) {
    return this.carry(fileRoute(run, "files", path), cargo, StoredFile);
  }

  /** A file that is not there is no problem. */
  async removeFile(run: RunName, path: string): Promise<Problem | undefined> {
    return unlessMissing(await this.call({ method: "DELETE", route: fileRoute(run, "files", path) }));
  }

  openUploads(run: RunName, path: string) {
    return this.ask({ method: "GET", route: fileRoute(run, "uploads", path) }, OpenUploads);
  }

  startUpload(run: RunName, path: string, file: { readonly size: number; readonly sha256: string }) {
    const body = JSON.stringify(file);
    return this.ask({ method: "POST", route: fileRoute(run, "uploads", path), body }, StartedUpload);
  }

  upload(run: RunName, path: string, id: string) {
    return this.ask({ method: "GET", route: uploadRoute(run, path, id) }, OpenUpload);
  }

  putPart(run: RunName, path: string, at: { readonly id: string; readonly part: number }, cargo: Cargo) {
    return this.carry(`${uploadRoute(run, path, at.id)}&part=${at.part}`, cargo, UploadedPart);
  }

  finishUpload(run: RunName, path: string, id: string): Promise<StoredFile | Problem> {
    const route = uploadRoute(run, path, id);
    return this.afterJoin(() => this.ask({ method: "POST", route, body: "{}" }, StoredFile));
  }

  /** An upload that is not there is no problem, and neither is one whose file is whole by now. */
  async abandonUpload(run: RunName, path: string, id: string): Promise<Problem | undefined> {
    const gone = await this.afterJoin(() => this.call({ method: "DELETE", route: uploadRoute(run, path, id) }));
    return unlessMissing(gone);
  }

  /** A file from `offset` on, to `take`, which may be called again with another offset when the connection breaks. */
  async download(
    run: RunName,
    path: string,
    from: () => { readonly offset: number; readonly etag: string },
    take: (response: Response, blocks: AsyncIterable<Uint8Array>) => Promise<"whole" | Problem>,
  ): Promise<"whole" | Problem> {
    const route = fileRoute(run, "files", path);
    let begunAt = 0;
    const attempt = () => {
      const { offset, etag } = from();
      begunAt = offset;
      const headers: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-`, "if-range": etag };
      return this.noted(download(this.service, { method: "GET", route, headers }, this, take));
    };
    return await patiently(attempt, { ...this.patience, progressed: () => from().offset > begunAt });
  }

  /** Sends a piece; bytes of an attempt that failed did not move. */
  private carry<T extends TSchema>(route: string, { piece, sha256, moved }: Cargo, schema: T) {
    let bytes = 0;
    const headers = { "content-digest": contentDigest(sha256) };
    const attempt = async () => {
      bytes = 0;
      const count = (more: number) => {
        bytes += more;
        moved(more);
      };
      const request: RunRequest = { method: "PUT", route, headers, body: { piece, moved: count } };
      const answer = await this.noted(exchange(this.service, request, this));
      if (answer instanceof Problem) moved(-bytes);
      return answer;
    };
    const also = { checksum_mismatch: DAMAGED_MAX };
    return this.checked(patiently(attempt, { ...this.patience, also }), schema);
  }

  private ask<T extends TSchema>(request: RunRequest, schema: T, more: More = {}): Promise<Static<T> | Problem> {
    return this.checked(this.call(request, more), schema);
  }

  /** Waits while another request, such as one whose connection broke, still puts the parts together. */
  private async afterJoin<T>(attempt: () => Promise<T | Problem>): Promise<T | Problem> {
    const { clock, signal, patience } = this;
    const begunMs = clock.monotonicMs();
    for (let looks = 1; ; looks += 1) {
      const outcome = await attempt();
      const late = signal.aborted || clock.monotonicMs() - begunMs >= FINISH_MS;
      if (late || !(outcome instanceof Problem) || !isCode(outcome, "upload_in_progress")) return outcome;
      const ms = pauseMs(outcome, looks, FINISH_PACE);
      patience.waiting(outcome, ms);
      await pause(clock, ms, signal);
    }
  }

  private call(request: RunRequest, more: More = {}) {
    const attempt = () => this.noted(exchange(this.service, request, this));
    return patiently(attempt, { ...this.patience, ...more });
  }

  private async checked<T extends TSchema>(
    called: Promise<{ readonly body: unknown } | Problem>,
    schema: T,
  ): Promise<Static<T> | Problem> {
    const answer = await called;
    if (answer instanceof Problem) return answer;
    if (Value.Check(schema, answer.body)) return answer.body;
    return new Problem(
      `the service at ${this.service.url} answered in another form than run storage has; is it a tendon service?`,
    );
  }

  private async noted<T>(asked: Promise<T | Problem>): Promise<T | Problem> {
    const answer = await asked;
    this.met ||= !(answer instanceof NoAnswer && answer.nobodyListens);
    return answer;
  }
}

function uploadRoute(run: RunName, path: string, id: string): string {
  return `${fileRoute(run, "uploads", path)}?upload_id=${encodeURIComponent(id)}`;
}

/** The problem of a deletion, unless what was to be deleted is not there. */
function unlessMissing(gone: unknown): Problem | undefined {
  const missing = isCode(gone, "file_not_found", "upload_not_found", "run_not_found");
  return gone instanceof Problem && !missing ? gone : undefined;
}

/** Whether the service refused with one of these codes. */
export function isCode(outcome: unknown, ...codes: readonly string[]): boolean {
  return outcome instanceof ErrorReply && outcome.code !== undefined && codes.includes(outcome.code);
}
