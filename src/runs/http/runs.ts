/** Whole runs: the list, what an account uses, a manifest, completion, deletion. */

import type { Principal } from "../../http/deps.ts";
import { isObject, type JsonObject } from "../../http/json.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { monthStart } from "../../std/calendar.ts";
import { Failure } from "../../std/failure.ts";
import { completeRun } from "../complete.ts";
import type { RunDeps } from "../deps.ts";
import { RUNS } from "../errors.ts";
import { gated } from "../gate.ts";
import { nameProblem, pathProblem } from "../names.ts";
import { listRuns, manifestOf, usageOf } from "../read.ts";
import { removeRun } from "../remove.ts";
import type { ListPlace } from "../store/reads.ts";
import { query, queryNumber, readRun } from "./target.ts";

type Keyed<Body> = Call<Principal, Body>;

function invalid(message: string, param: string): Failure {
  return new Failure(RUNS.invalid_request, message, { param });
}

export async function list(deps: RunDeps, { request, principal }: Keyed<undefined>): Promise<Outcome> {
  const robot = query(request.url, "robot");
  if (robot instanceof Failure) return robot;
  const problem = robot === undefined ? undefined : nameProblem(robot);
  if (problem !== undefined) return invalid(`robot ${problem}`, "robot");
  const limit = queryNumber(request.url, "limit", 1, LIMITS.runsListedMax) ?? LIMITS.runsListedDefault;
  if (limit instanceof Failure) return limit;
  const after = readPlace(query(request.url, "after"));
  if (after instanceof Failure) return after;
  const { accountId } = principal;
  const page = await gated(deps, { accountId, robot: "", run: "" }, () =>
    listRuns(deps, { accountId, robot, after, limit }),
  );
  if (page instanceof Failure) return page;
  const data = page.runs.map(({ completedAt, id: _, ...run }) => ({ ...run, completed_at: completedAt }));
  const next = page.next === undefined ? null : placeText(page.next);
  return { status: 200, body: JSON.stringify({ object: "list", data, has_more: next !== null, next }) };
}

const PLACE = /^(\d{1,15})-(run_[0-9A-Za-z]{1,64})$/;

export function placeText({ completedAt, id }: ListPlace): string {
  return `${completedAt}-${id}`;
}

export function readPlace(text: string | undefined | Failure): ListPlace | undefined | Failure {
  if (typeof text !== "string") return text;
  const [, completedAt, id] = PLACE.exec(text) ?? [];
  if (id === undefined) return invalid("after is not the `next` of a page of this list", "after");
  return { completedAt: Number(completedAt), id };
}

export async function usage(deps: RunDeps, { principal }: Keyed<undefined>): Promise<Outcome> {
  const { accountId } = principal;
  const found = await gated(deps, { accountId, robot: "", run: "" }, () => usageOf(deps, accountId));
  if (found instanceof Failure) return found;
  const { stored, reserved, completed, uploaded, downloaded, requests, month } = found;
  const body = {
    object: "robot.usage",
    stored_bytes: stored,
    reserved_bytes: reserved,
    quota_bytes: deps.bounds.accountBytesMax,
    runs: completed,
    month: { start: monthStart(month), uploaded_bytes: uploaded, downloaded_bytes: downloaded, requests },
  };
  return { status: 200, body: JSON.stringify(body) };
}

export async function manifest(deps: RunDeps, { request, principal }: Keyed<undefined>): Promise<Outcome> {
  const key = readRun(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  const found = await gated(deps, key, () => manifestOf(deps, key));
  return found instanceof Failure ? found : { status: 200, body: found };
}

export async function erase(deps: RunDeps, { request, principal }: Keyed<undefined>): Promise<Outcome> {
  const key = readRun(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  return (await gated(deps, key, () => removeRun(deps, key))) ?? { status: 204, body: null };
}

export async function complete(deps: RunDeps, { request, principal, body }: Keyed<JsonObject>): Promise<Outcome> {
  const key = readRun(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  const files = readFiles(body.files);
  if (files instanceof Failure) return files;
  const metadata = body.metadata ?? {};
  if (!isObject(metadata)) return invalid("metadata must be an object", "metadata");
  const found = await gated(deps, key, () => completeRun(deps, { ...key, files, metadata }));
  return found instanceof Failure ? found : { status: 200, body: found };
}

interface Listed {
  readonly path: string;
  readonly size: number;
  readonly sha256?: string;
}

function readFiles(value: unknown): readonly Listed[] | Failure {
  if (!Array.isArray(value) || value.length === 0) {
    return invalid("files must be a list of {path, size, sha256?} with at least one file", "files");
  }
  const files: Listed[] = [];
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const file = readFile(item, `files[${index}]`);
    if (file instanceof Failure) return file;
    if (seen.has(file.path)) return invalid(`${JSON.stringify(file.path)} is listed twice`, `files[${index}].path`);
    seen.add(file.path);
    files.push(file);
  }
  return folderAmong(files, seen) ?? files;
}

/** A path that is a folder of another one: no file system could hold both, so nobody could fetch the run. */
function folderAmong(files: readonly Listed[], paths: ReadonlySet<string>): Failure | undefined {
  for (const [index, { path }] of files.entries()) {
    for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
      const folder = path.slice(0, slash);
      if (!paths.has(folder)) continue;
      const both = `${JSON.stringify(folder)} is a file and a folder of ${JSON.stringify(path)}`;
      return invalid(`${both}; delete one of them, and store it under another path`, `files[${index}].path`);
    }
  }
  return undefined;
}

function readFile(item: unknown, at: string): Listed | Failure {
  if (!isObject(item)) return invalid(`${at} must be an object {path, size, sha256?}`, at);
  const { path, size, sha256 } = item;
  if (typeof path !== "string") return invalid(`${at}.path must be a text`, `${at}.path`);
  const problem = path.isWellFormed() ? pathProblem(path.split("/")) : "is not well-formed Unicode";
  if (problem !== undefined) return invalid(`${at}.path ${problem}`, `${at}.path`);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    return invalid(`${at}.size must be a number of bytes, a whole number`, `${at}.size`);
  }
  if (sha256 == null) return { path, size };
  if (typeof sha256 !== "string" || !/^[0-9a-fA-F]{64}$/.test(sha256)) {
    return invalid(`${at}.sha256 is not 64 hexadecimal digits`, `${at}.sha256`);
  }
  return { path, size, sha256: sha256.toLowerCase() };
}
