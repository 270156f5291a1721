/** Names of runs and paths of files in them (contract section 7), and the routes that they make. */
import { LIMITS } from "../../limits.ts";

export interface RunName {
  readonly robot: string;
  readonly run: string;
}

export const RUNS_ROUTE = "/v1/robot/runs";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** What is wrong with the name of a robot or a run. */
export function nameProblem(name: string): string | undefined {
  if (NAME.test(name)) return undefined;
  return "expected 1 to 128 letters, digits, '.', '_' or '-', the first one a letter or a digit";
}

/** What is wrong with the path of a file. The service's own paths are checked too: none may lead out of the folder it is written to. */
export function pathProblem(path: string): string | undefined {
  const { runPathBytesMax, runPathSegmentsMax } = LIMITS;
  if (path === "" || Buffer.byteLength(path) > runPathBytesMax) {
    return `its path must have 1 to ${runPathBytesMax} bytes`;
  }
  if (!path.isWellFormed()) return "its path is not Unicode";
  if (/[\\\p{Cc}]/u.test(path)) return "its path has a backslash or a control character";
  const segments = path.split("/");
  if (segments.length > runPathSegmentsMax) return `it lies deeper than ${runPathSegmentsMax} folders`;
  if (segments.some((segment) => segment === "" || segment === "." || segment === "..")) {
    return "its path has an empty, '.' or '..' part";
  }
  return undefined;
}

export function runRoute({ robot, run }: RunName): string {
  return `${RUNS_ROUTE}/${encodeURIComponent(robot)}/${encodeURIComponent(run)}`;
}

export function fileRoute(run: RunName, kind: "files" | "uploads", path: string): string {
  return `${runRoute(run)}/${kind}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** For messages. */
export function runText({ robot, run }: RunName): string {
  return `${robot}/${run}`;
}
