/** Whole runs: the list, the usage of an account, a manifest, completion, deletion. */
import type { Principal } from "../../http/deps.ts";
import { isObject, type JsonObject } from "../../http/json.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { monthStart } from "../../std/calendar.ts";
import { Failure } from "../../std/failure.ts";
import { nameProblem, pathProblem } from "../../std/run-names.ts";
import { invalid } from "../errors.ts";
import { gated, ofAccount, type RunDeps } from "../gate.ts";
import { type Completing, completeRun, listRuns, manifestOf, removeRun, usageOf } from "../runs.ts";
import type { ListCursor } from "../store/reads.ts";
import { readHex } from "./digest.ts";
import { about, query, queryNumber, readRun, removing } from "./target.ts";

type Keyed<Body> = Call<Principal, Body>;

export async function list(deps: RunDeps, { request, principal }: Keyed<undefined>): Promise<Outcome> {
  const robot = query(request.url, "robot");
  if (robot instanceof Failure) return robot;
  const problem = robot === undefined ? undefined : nameProblem(robot);
  if (problem !== undefined) return invalid(`robot ${problem}`, "robot");
  const limit = queryNumber(request.url, "limit", 1, LIMITS.runsListedMax) ?? LIMITS.runsListedDefault;
  if (limit instanceof Failure) return limit;
  const after = readCursor(query(request.url, "after"));
  if (after instanceof Failure) return after;
  const { accountId } = principal;
  const page = await gated(deps, ofAccount(accountId), () => listRuns(deps, { accountId, robot, after, limit }));
  if (page instanceof Failure) return page;
  const data = page.runs.map(({ completedAt, id: _, ...run }) => ({ ...run, completed_at: completedAt }));
  const next = page.next === undefined ? null : cursorText(page.next);
  return { status: 200, body: JSON.stringify({ object: "list", data, has_more: next !== null, next }) };
}

const CURSOR = /^(\d{1,15})-(run_[0-9A-Za-z]{1,64})$/;

export function cursorText({ completedAt, id }: ListCursor): string {
  return `${completedAt}-${id}`;
}

export function readCursor(text: string | undefined | Failure): ListCursor | undefined | Failure {
  if (typeof text !== "string") return text;
  const [, completedAt, id] = CURSOR.exec(text) ?? [];
  if (id === undefined) return invalid("after is not the `next` of a page of this list", "after");
  return { completedAt: Number(completedAt), id };
}

export const usage = about(ofAccount, async (deps, { accountId }) => {
  const found = await usageOf(deps, accountId);
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
});

export const manifest = about(readRun, async (deps, key) => {
  const found = await manifestOf(deps, key);
  return found instanceof Failure ? found : { status: 200, body: found };
});

export const erase = removing(readRun, removeRun);

export async function complete(deps: RunDeps, { request, principal, body }: Keyed<JsonObject>): Promise<Outcome> {
  const key = readRun(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  const files = readFiles(body.files);
  if (files instanceof Failure) return files;
  const metadata = body.metadata ?? {};
  if (!isObject(metadata)) return invalid("metadata must be an object", "metadata");
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes > LIMITS.runMetadataBytesMax) {
    const most = `at most ${LIMITS.runMetadataBytesMax} are kept; store the rest as a file of the run`;
    return invalid(`metadata has ${bytes} bytes as JSON without spaces; ${most}`, "metadata");
  }
  const found = await gated(deps, key, () => completeRun(deps, { ...key, files, metadata }));
  return found instanceof Failure ? found : { status: 200, body: found };
}

type Listed = Completing["files"][number];

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

/** A path that is a folder of another one. No file system holds both, so the run could not be fetched. */
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
  const problem = pathProblem(path.split("/"));
  if (problem !== undefined) return invalid(`${at}.path ${problem}`, `${at}.path`);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    return invalid(`${at}.size must be a number of bytes, a whole number`, `${at}.size`);
  }
  if (sha256 == null) return { path, size };
  const digest = readHex(sha256);
  return digest
    ? { path, size, sha256: digest.toHex() }
    : invalid(`${at}.sha256 is not 64 hexadecimal digits`, `${at}.sha256`);
}
