/** The routes of run storage: `/v1/robot/runs…`. */
import { json, NO_BODY, STREAM } from "../../http/body-rules.ts";
import type { Principal } from "../../http/deps.ts";
import { type Call, KEY, type Outcome, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { RUNS, RUNS_ANSWERS } from "../errors.ts";
import type { RunDeps } from "../gate.ts";
import { deleteOne, getOne, putOne } from "./files.ts";
import * as operations from "./operations.ts";
import { complete, erase, list, manifest, usage } from "./runs.ts";
import { RUN_HEADERS, RUN_SCHEMAS } from "./schemas.ts";
import { deleteUpload, getUpload, postUpload, putUpload } from "./uploads.ts";

const RUN = "/v1/robot/runs/:robot/:run";
const FILE = `${RUN}/files/*`;
const UPLOAD = `${RUN}/uploads/*`;

type Declared<Body> = Parameters<typeof route<Principal, Body>>[0];

interface RunRoute<Body> extends Omit<Declared<Body>, "key" | "handle"> {
  readonly handle: (deps: RunDeps, call: Call<Principal, Body>) => Promise<Outcome>;
}

export function runs({ runs: deps }: { readonly runs: RunDeps }): Surface {
  /** A route with a key that counts the requests that it accepts. */
  const counted = <Body>({ handle, ...declared }: RunRoute<Body>) =>
    route<Principal, Body>({
      ...declared,
      key: KEY,
      handle: async (call) => {
        const outcome = await handle(deps, call);
        const refused = outcome instanceof Failure || (typeof outcome === "object" && "failure" in outcome);
        if (!refused) deps.meter.request(call.principal.accountId);
        return outcome;
      },
    });
  const plain = (declared: Omit<RunRoute<undefined>, "body">) => counted({ ...declared, body: NO_BODY });
  const { invalid_request, storage_busy, storage_unavailable } = RUNS;
  const common = [invalid_request, storage_busy, storage_unavailable];
  const body = [RUNS.length_required, RUNS.request_too_large, RUNS.checksum_mismatch];
  const room = [RUNS.upload_in_progress, RUNS.run_completed, RUNS.run_too_large, RUNS.storage_quota_exceeded];
  const { run_not_found, file_not_found, upload_not_found, request_too_large } = RUNS;
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
    routes: [
      plain({
        method: "GET",
        path: "/v1/robot/runs",
        name: "runs",
        failures: common,
        operation: operations.listRuns,
        handle: list,
      }),
      plain({
        method: "GET",
        path: "/v1/robot/runs/usage",
        name: "run_usage",
        failures: [storage_busy, storage_unavailable],
        operation: operations.runUsage,
        handle: usage,
      }),
      plain({
        method: "GET",
        path: RUN,
        name: "run",
        failures: [run_not_found, ...common],
        operation: operations.getRun,
        handle: manifest,
      }),
      plain({
        method: "DELETE",
        path: RUN,
        name: "run_delete",
        failures: [run_not_found, ...common],
        operation: operations.deleteRun,
        handle: erase,
      }),
      counted({
        method: "POST",
        path: `${RUN}/complete`,
        name: "run_complete",
        body: json(LIMITS.runJsonBytesMax, { smaller: "list fewer files, or send less metadata" }),
        beginsWork: true,
        failures: [RUNS.upload_in_progress, RUNS.run_incomplete, RUNS.run_completed, request_too_large, ...common],
        operation: operations.completeRun,
        handle: complete,
      }),
      counted({
        method: "PUT",
        path: FILE,
        name: "run_file_put",
        body: STREAM,
        beginsWork: true,
        failures: [run_not_found, ...body, ...room, ...common],
        operation: operations.putFile,
        handle: putOne,
      }),
      plain({
        method: "GET",
        path: FILE,
        name: "run_file",
        failures: [run_not_found, file_not_found, RUNS.invalid_range, ...common],
        operation: operations.getFile,
        handle: getOne,
      }),
      plain({
        method: "HEAD",
        path: FILE,
        name: "run_file_head",
        failures: [run_not_found, file_not_found, ...common],
        operation: operations.headFile,
        handle: getOne,
      }),
      plain({
        method: "DELETE",
        path: FILE,
        name: "run_file_delete",
        failures: [run_not_found, file_not_found, RUNS.run_completed, ...common],
        operation: operations.deleteFile,
        handle: deleteOne,
      }),
      plain({
        method: "GET",
        path: UPLOAD,
        name: "run_upload",
        failures: [upload_not_found, ...common],
        operation: operations.getUpload,
        handle: getUpload,
      }),
      counted({
        method: "POST",
        path: UPLOAD,
        name: "run_upload_post",
        body: json(LIMITS.runJsonBytesMax, { mayBeEmpty: true }),
        beginsWork: true,
        failures: [
          upload_not_found,
          RUNS.run_incomplete,
          RUNS.too_many_uploads,
          request_too_large,
          RUNS.checksum_mismatch,
          ...room,
          ...common,
        ],
        operation: operations.postUpload,
        handle: postUpload,
      }),
      counted({
        method: "PUT",
        path: UPLOAD,
        name: "run_upload_put",
        body: STREAM,
        beginsWork: true,
        failures: [upload_not_found, RUNS.upload_in_progress, ...body, ...common],
        operation: operations.putPart,
        handle: putUpload,
      }),
      plain({
        method: "DELETE",
        path: UPLOAD,
        name: "run_upload_delete",
        failures: [upload_not_found, RUNS.upload_in_progress, ...common],
        operation: operations.deleteUpload,
        handle: deleteUpload,
      }),
    ],
    schemas: RUN_SCHEMAS,
    headers: RUN_HEADERS,
  };
}
