/** The surface of run storage: `/v1/robot/runs…`. */
import type { Surface } from "../../http/surface.ts";
import { RUNS_ANSWERS } from "../errors.ts";
import type { RunDeps } from "../gate.ts";
import { FILE_ROUTES } from "./file-routes.ts";
import { RUN_ROUTES } from "./run-routes.ts";
import { RUN_HEADERS, RUN_SCHEMAS } from "./schemas.ts";
import { UPLOAD_ROUTES } from "./upload-routes.ts";

export function runs({ runs: deps }: { readonly runs: RunDeps }): Surface {
  return {
    tag: "Runs of robots",
    answers: RUNS_ANSWERS,
    page: {
      name: "robot-runs",
      operationId: "docsRobotRuns",
      title: "Robot runs",
      description: "What run storage promises, a first run, uploads in parts, and the form of a run's log.",
      make: async () => (await import("../docs/robot-runs.ts")).robotRunsPage(),
    },
    routes: [...RUN_ROUTES, ...FILE_ROUTES, ...UPLOAD_ROUTES].map((declared) => declared(deps)),
    schemas: RUN_SCHEMAS,
    headers: RUN_HEADERS,
  };
}
