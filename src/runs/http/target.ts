/** What a request is about, out of its address: the names of a run, the path of a file, the query. */
import { Failure } from "../../std/failure.ts";
import { RUNS } from "../errors.ts";
import { nameProblem, pathProblem } from "../names.ts";
import type { FileKey, RunKey } from "../store/records.ts";

/** Segments before the robot's name: "", "v1", "robot", "runs". */
const BEFORE = 4;

/** As they were sent: an encoded slash must not count as one. */
function segmentsOf(url: string): string[] {
  return new URL(url).pathname.split("/").slice(BEFORE);
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function invalid(param: string, problem: string): Failure {
  return new Failure(RUNS.invalid_request, `${param} ${problem}`, { param });
}

export function readRun(accountId: string, url: string): RunKey | Failure {
  const [robot = "", run = ""] = segmentsOf(url).map((segment) => decoded(segment) ?? "");
  for (const [param, name] of Object.entries({ robot, run })) {
    const problem = nameProblem(name);
    if (problem !== undefined) return invalid(param, problem);
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

/** The path of a file out of segments that are percent-encoded. */
export function readPath(encoded: readonly string[]): string | Failure {
  const segments = encoded.map(decoded);
  if (!segments.every((segment) => segment !== undefined)) {
    return invalid("path", "is not UTF-8 after percent-decoding");
  }
  const problem = pathProblem(segments);
  return problem === undefined ? segments.join("/") : invalid("path", problem);
}

/** A parameter of the query; undefined: it is not there. */
export function query(url: string, name: string): string | undefined | Failure {
  const [value, second] = new URL(url).searchParams.getAll(name);
  if (second !== undefined) return invalid(name, "stands in the query more than once");
  return value === "" ? invalid(name, "is empty in the query") : value;
}

/** A whole number out of the query. */
export function queryNumber(url: string, name: string, least: number, most: number): number | undefined | Failure {
  const value = query(url, name);
  if (typeof value !== "string") return value;
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  return number >= least && number <= most ? number : invalid(name, `must be a whole number from ${least} to ${most}`);
}
