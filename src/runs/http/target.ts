/** The parts of a request's address (the names of a run, the path of a file, the query), and the requests that need no more. */
import type { Principal } from "../../http/deps.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { Failure } from "../../std/failure.ts";
import { nameProblem, pathProblem } from "../../std/run-names.ts";
import { invalid } from "../errors.ts";
import { gated, type Keep, type Kind, type RunDeps } from "../gate.ts";
import type { FileKey, RunKey } from "../store/records.ts";

/** What stands before the robot's name, in the API and in the pages. */
const BEFORE = /^\/(v1\/robot|account)\/runs\//;

/** The segments are still encoded, because an encoded slash is none. */
function segmentsOf(url: string): string[] {
  return new URL(url).pathname.replace(BEFORE, "").split("/");
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

export function readRun(accountId: string, url: string): RunKey | Failure {
  const [robot = "", run = ""] = segmentsOf(url).map((segment) => decoded(segment) ?? "");
  for (const [param, name] of Object.entries({ robot, run })) {
    const problem = nameProblem(name);
    if (problem !== undefined) return invalid(`${param} ${problem}`, param);
  }
  return { accountId, robot, run };
}

/** `…/{robot}/{run}/files/{path}` and `…/uploads/{path}`. */
export function readFileKey(accountId: string, url: string): FileKey | Failure {
  const key = readRun(accountId, url);
  if (key instanceof Failure) return key;
  const path = readPath(segmentsOf(url).slice(3));
  return typeof path === "string" ? { ...key, path } : path;
}

function readPath(encoded: readonly string[]): string | Failure {
  const segments = encoded.map(decoded);
  if (!segments.every((segment) => segment !== undefined)) {
    return invalid("path is not UTF-8 after percent-decoding", "path");
  }
  const problem = pathProblem(segments);
  return problem === undefined ? segments.join("/") : invalid(`path ${problem}`, "path");
}

/** A parameter of the query; undefined if it is missing. */
export function query(url: string, name: string): string | undefined | Failure {
  const [value, second] = new URL(url).searchParams.getAll(name);
  if (second !== undefined) return invalid(`${name} is in the query more than once`, name);
  return value === "" ? invalid(`${name} is empty in the query`, name) : value;
}

/** A whole number of the query; undefined if it is missing. */
export function queryNumber(url: string, name: string, least: number, most: number): number | undefined | Failure {
  const value = query(url, name);
  if (typeof value !== "string") return value;
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  return invalid(`${name} must be a whole number from ${least} to ${most}`, name);
}

type Handler = (deps: RunDeps, call: Call<Principal, undefined>) => Promise<Outcome>;

/** A handler that reads the key of a request and does its work with a permit. */
export function about<Key extends RunKey>(
  read: (accountId: string, url: string) => Key | Failure,
  work: (deps: RunDeps, key: Key, request: Request, keep: Keep) => Promise<Outcome>,
  kind?: Kind,
): Handler {
  return async (deps, { request, principal }) => {
    const key = read(principal.accountId, request.url);
    if (key instanceof Failure) return key;
    return await gated(deps, key, (keep) => work(deps, key, request, keep), kind);
  };
}

/** The same for a deletion, whose answer has no body. */
export function removing<Key extends RunKey>(
  read: (accountId: string, url: string) => Key | Failure,
  remove: (deps: RunDeps, key: Key) => Promise<Failure | undefined>,
): Handler {
  return about(read, async (deps, key) => (await remove(deps, key)) ?? { status: 204, body: null });
}
