/** The storage of robots' runs: `/v1/robot/runs…`. */

import { json, NO_BODY, optionalJson, STREAM } from "../../http/body-rules.ts";
import type { Principal } from "../../http/deps.ts";
import { type Call, KEY, type Outcome, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import type { RunDeps } from "../deps.ts";
import { RUNS, RUNS_ANSWERS } from "../errors.ts";
import { deleteOne, getOne, putOne } from "./files.ts";
import {
  completeOperation,
  deleteFileOperation,
  deleteRunOperation,
  deleteUploadOperation,
  getFileOperation,
  getUploadOperation,
  headFileOperation,
  listRunsOperation,
  manifestOperation,
  postUploadOperation,
  putFileOperation,
  putPartOperation,
  runUsageOperation,
} from "./operations.ts";
import { complete, erase, list, manifest, usage } from "./runs.ts";
import { RUN_HEADERS, RUN_SCHEMAS } from "./schemas.ts";
import { deleteUpload, getUpload, postUpload, putUpload } from "./uploads.ts";

const RUN = "/v1/robot/runs/:robot/:run";
const FILE = `${RUN}/files/*`;
const UPLOAD = `${RUN}/uploads/*`;

type Handler<Body> = (deps: RunDeps, call: Call<Principal, Body>) => Promise<Outcome>;

export function runs({ runs: deps }: { readonly runs: RunDeps }): Surface {
  /** Counts what is accepted. */
  const by =
    <Body>(handler: Handler<Body>) =>
    async (call: Call<Principal, Body>): Promise<Outcome> => {
      const outcome = await handler(deps, call);
      const refused = outcome instanceof Failure || (typeof outcome === "object" && "failure" in outcome);
      if (!refused) deps.meter.request(call.principal.accountId);
      return outcome;
    };
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
      route({
        method: "GET",
        path: "/v1/robot/runs",
        name: "runs",
        key: KEY,
        body: NO_BODY,
        failures: common,
        operation: listRunsOperation,
        handle: by(list),
      }),
      route({
        method: "GET",
        path: "/v1/robot/runs/usage",
        name: "run_usage",
        key: KEY,
        body: NO_BODY,
        failures: [storage_busy, storage_unavailable],
        operation: runUsageOperation,
        handle: by(usage),
      }),
      route({
        method: "GET",
        path: RUN,
        name: "run",
        key: KEY,
        body: NO_BODY,
        failures: [run_not_found, ...common],
        operation: manifestOperation,
        handle: by(manifest),
      }),
      route({
        method: "DELETE",
        path: RUN,
        name: "run_delete",
        key: KEY,
        body: NO_BODY,
        failures: [run_not_found, ...common],
        operation: deleteRunOperation,
        handle: by(erase),
      }),
      route({
        method: "POST",
        path: `${RUN}/complete`,
        name: "run_complete",
        key: KEY,
        body: json(LIMITS.runJsonBytesMax, "list fewer files, or send less metadata"),
        beginsWork: true,
        failures: [RUNS.upload_in_progress, RUNS.run_incomplete, RUNS.run_completed, request_too_large, ...common],
        operation: completeOperation,
        handle: by(complete),
      }),
      route({
        method: "PUT",
        path: FILE,
        name: "run_file_put",
        key: KEY,
        body: STREAM,
        beginsWork: true,
        failures: [run_not_found, ...body, ...room, ...common],
        operation: putFileOperation,
        handle: by(putOne),
      }),
      route({
        method: "GET",
        path: FILE,
        name: "run_file",
        key: KEY,
        body: NO_BODY,
        failures: [run_not_found, file_not_found, RUNS.invalid_range, ...common],
        operation: getFileOperation,
        handle: by(getOne),
      }),
      route({
        method: "HEAD",
        path: FILE,
        name: "run_file_head",
        key: KEY,
        body: NO_BODY,
        failures: [run_not_found, file_not_found, ...common],
        operation: headFileOperation,
        handle: by(getOne),
      }),
      route({
        method: "DELETE",
        path: FILE,
        name: "run_file_delete",
        key: KEY,
        body: NO_BODY,
        failures: [run_not_found, file_not_found, RUNS.run_completed, ...common],
        operation: deleteFileOperation,
        handle: by(deleteOne),
      }),
      route({
        method: "GET",
        path: UPLOAD,
        name: "run_upload",
        key: KEY,
        body: NO_BODY,
        failures: [upload_not_found, ...common],
        operation: getUploadOperation,
        handle: by(getUpload),
      }),
      route({
        method: "POST",
        path: UPLOAD,
        name: "run_upload_post",
        key: KEY,
        body: optionalJson(LIMITS.runJsonBytesMax),
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
        operation: postUploadOperation,
        handle: by(postUpload),
      }),
      route({
        method: "PUT",
        path: UPLOAD,
        name: "run_upload_put",
        key: KEY,
        body: STREAM,
        beginsWork: true,
        failures: [upload_not_found, RUNS.upload_in_progress, ...body, ...common],
        operation: putPartOperation,
        handle: by(putUpload),
      }),
      route({
        method: "DELETE",
        path: UPLOAD,
        name: "run_upload_delete",
        key: KEY,
        body: NO_BODY,
        failures: [upload_not_found, RUNS.upload_in_progress, ...common],
        operation: deleteUploadOperation,
        handle: by(deleteUpload),
      }),
    ],
    schemas: RUN_SCHEMAS,
    headers: RUN_HEADERS,
  };
}
