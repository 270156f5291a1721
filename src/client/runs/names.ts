/** The names of a run, and the routes that names and paths make (contract section 7). */
import type { RunName } from "../../std/run-names.ts";

export const RUNS_ROUTE = "/v1/robot/runs";

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
